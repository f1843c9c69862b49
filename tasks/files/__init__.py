"""The disk: what has to hold for files whoever writes or leaves them."""
