"""The arithmetic of losses, penalties and certificates."""
