// TCP flows over a dumbbell in ns-3: dumbbell FLOWS SECONDS QUEUE
//
// Each flow has hosts of its own. Bottleneck 10 Mbit/s, 45 ms; edge links 100 Mbit/s, 5 ms;
// drop-tail queues of QUEUE packets and no queueing discipline above them. NewReno with SACK,
// delayed acknowledgements, 1460-byte segments, buffers of 128 KiB. No trace is written.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

using namespace ns3;

static NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, const std::string& rate, const std::string& delay, int queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(queue) + "p"));
    return link.Install(a, b);
}

int
main(int argc, char** argv)
{
    if (argc != 4)
    {
        std::fprintf(stderr, "usage: dumbbell FLOWS SECONDS QUEUE\n");
        return 2;
    }
    const int flows = std::atoi(argv[1]);
    const double seconds = std::atof(argv[2]);
    const int queue = std::atoi(argv[3]);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 17));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 17));

    NodeContainer routers(2);
    NodeContainer left(flows);
    NodeContainer right(flows);
    InternetStackHelper stack;
    stack.InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    const auto address = [&](const NetDeviceContainer& devices) {
        const auto interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        return interfaces;
    };
    address(Connect(routers.Get(0), routers.Get(1), "10Mbps", "45ms", queue));

    auto random = CreateObject<UniformRandomVariable>();
    ApplicationContainer sinks;
    for (int n = 0; n < flows; n++)
    {
        address(Connect(left.Get(n), routers.Get(0), "100Mbps", "5ms", queue));
        const auto to = address(Connect(right.Get(n), routers.Get(1), "100Mbps", "5ms", queue));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(to.GetAddress(0), 9));
        sinks.Add(sink.Install(right.Get(n)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(to.GetAddress(0), 9));
        // Within the first second, so that no two begin together.
        source.Install(left.Get(n)).Start(Seconds(random->GetValue()));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(seconds));
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    unsigned long long bytes = 0;
    for (uint32_t n = 0; n < sinks.GetN(); n++)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(n))->GetTotalRx();
    }
    std::printf("{\"simulator\":\"ns-3\",\"flows\":%d,\"virtual_s\":%g,\"wall_s\":%.3f,"
                "\"delivered_packets\":%llu,\"delivered_bytes\":%llu}\n",
                flows, seconds, wall.count(), bytes / 1460, bytes);
    Simulator::Destroy();
    return 0;
}
