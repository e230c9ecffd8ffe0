"""What the measurement of the gateway is made of: an upstream, a load, and gateways."""
