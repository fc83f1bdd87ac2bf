"""One module per export format; `transforms.registry` finds them. See docs/add-a-source.md."""
