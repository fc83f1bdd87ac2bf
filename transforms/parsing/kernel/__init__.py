"""Lines of the Linux kernel log: their headers, and what the messages say."""
