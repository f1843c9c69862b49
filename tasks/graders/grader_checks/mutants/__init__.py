"""Good transcripts made bad in one way each: what correct graders have to notice, and what they must not mind."""
