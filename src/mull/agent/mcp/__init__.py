"""Servers of tools that speak the Model Context Protocol, through its official SDK.

The SDK is imported where a server is used and nowhere else: who has none configured never pays.
"""
