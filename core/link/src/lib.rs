//! Links: queues, transmitters, wires.
