"""kube-scheduler's decisions as pure functions: which nodes fit a pod, what each is worth, which one is taken."""
