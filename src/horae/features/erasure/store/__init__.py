"""What erasures delete, and what they leave."""
