// The workloads W1 and W2 for htsim (csg-htsim): `htsim w1|w2`, linked with its library libhtsim.a.
//
// htsim has NewReno without SACK, and neither CUBIC nor Linux's loss detection. Prints the data packets that arrived in order.

#include <iostream>
#include <string>
#include <vector>
#include "clock.h"
#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

struct Workload {
    int flows;
    int seconds;
    int edge_mbps;
    int bottleneck_mbps;
    int bottleneck_packets;
    int edge_packets;
};

// Three links of 1, 8 and 1 ms one way, as in scenarios/bench/w1.toml and w2.toml. Each has its own queue.
static void add_links(Route &route, const Workload &w, EventList &events) {
    const int delay_ms[] = {1, 8, 1};
    for (int hop = 0; hop < 3; hop++) {
        const bool is_bottleneck = hop == 1;
        const uint64_t mbps = is_bottleneck ? w.bottleneck_mbps : w.edge_mbps;
        const int packets = is_bottleneck ? w.bottleneck_packets : w.edge_packets;
        route.push_back(new Queue(speedFromMbps(mbps), memFromPkt(packets), events, NULL));
        route.push_back(new Pipe(timeFromMs(delay_ms[hop]), events));
    }
}

int main(int argc, char **argv) {
    const std::string name = argc == 2 ? argv[1] : "";
    Workload w;
    if (name == "w1") {
        w = {1, 100, 1000, 100, 167, 1000};
    } else if (name == "w2") {
        w = {10, 20, 10000, 1000, 1667, 10000};
    } else {
        std::cerr << "usage: htsim w1|w2\n";
        return 2;
    }
    Packet::set_packet_size(1500);
    EventList events;
    events.setEndtime(timeFromSec(w.seconds));
    srand(1);
    Route forward, backward;
    add_links(forward, w, events);
    add_links(backward, w, events);
    TcpRtxTimerScanner scanner(timeFromMs(10), events);
    std::vector<TcpSink *> sinks;
    for (int i = 0; i < w.flows; i++) {
        TcpSrc *source = new TcpSrc(NULL, NULL, events);
        TcpSink *sink = new TcpSink();
        scanner.registerTcp(*source);
        Route *out = forward.clone();
        Route *back = backward.clone();
        out->push_back(sink);
        back->push_back(source);
        source->connect(*out, *back, *sink, timeFromMs(i));
        sinks.push_back(sink);
    }
    while (events.doNextEvent()) {
    }
    uint64_t bytes = 0;
    for (const TcpSink *sink : sinks) {
        bytes += sink->_cumulative_ack;
    }
    std::cout << "{\"delivered_data_packets\": " << bytes / 1500 << "}" << std::endl;
}
