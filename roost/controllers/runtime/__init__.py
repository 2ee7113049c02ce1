"""What runs every controller: watches that feed a snapshot, the loop, and the requests that carry plans out."""
