module roost.hub.jupyter.org/pause

go 1.21
