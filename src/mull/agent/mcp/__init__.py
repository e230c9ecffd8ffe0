"""Tool servers that speak the Model Context Protocol, through its official SDK.

The SDK is imported only where a server is used, so it costs nothing without one.
"""
