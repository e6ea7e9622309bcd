"""Real SuperLinks and SuperNodes on this machine: certificates, keys, processes."""
