"""What DefaultPreemption is made of: who may preempt, whom, on which node, at what price."""
