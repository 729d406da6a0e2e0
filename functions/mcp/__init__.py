"""The Model Context Protocol: this service's tools for agents, over HTTP and standard input and output.

`rpc` frames JSON-RPC; `protocol` knows MCP's versions and methods; `toolbox` finds and runs tools; `brain` and
`facts` are the tools; `quoting` and `paging` shape what a model gets to read; `http` and `stdio` carry it.
"""
