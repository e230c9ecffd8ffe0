"""Pure wire codecs: bytes to events and requests to bytes, one package per dialect."""
