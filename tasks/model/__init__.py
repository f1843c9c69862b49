"""What the pipeline passes from room to room: frozen types without input or output."""
