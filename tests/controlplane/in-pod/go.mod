module roost.test/controlplane/in-pod

go 1.24
