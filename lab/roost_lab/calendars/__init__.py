"""Read bookings from iCalendar files, of strangers too: within bounds, each fault by name."""
