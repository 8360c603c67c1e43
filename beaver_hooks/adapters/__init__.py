"""One file for each foreign agent framework. Each imports its framework, and nothing else imports any of them."""
