"""Grammars that several export formats share: host lists, times, durations, sizes, TRES, states, PCI addresses."""
