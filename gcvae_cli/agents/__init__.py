"""The Model Context Protocol (MCP) server, through which AI agents use a gcvae service."""
