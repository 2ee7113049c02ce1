"""What every program needs: where a pod should go, how kube-scheduler decides, and the API server's
client.
"""
