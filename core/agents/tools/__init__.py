"""Tools as models see them, and what their calls mean: pure. Who carries a call out is `core.service.agent_tools`."""
