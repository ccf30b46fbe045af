// How the workers of a generation find each other: every worker has one listening port for its whole life, and a mesh
// of connections is made anew for every generation. Callers without the token, and peers of another generation, are
// refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <dtrain/base/accelerator.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

struct PeerAddress {
  std::string address;  // numeric, IPv4 or IPv6: the address that peers really reach
  std::uint16_t port = 0;
  friend bool operator==(const PeerAddress&, const PeerAddress&) = default;
};

struct MeshPlan {
  std::uint64_t generation = 0;
  int rank = 0;
  std::vector<PeerAddress> ranks;  // by rank, this one included
};

enum class Transport { tcp, gloo, nccl };

// Where reductions by NCCL are added up.
struct NcclSite {
  Path library;  // libnccl.so.2
  std::shared_ptr<Accelerator> device;
  bool any_order = false;  // NCCL chooses the order of additions: the ranks get equal sums, two runs may not
};

// Contributions, of floats, that a rank keeps on its GPU for a reduction of so many shards by NCCL: subtrees of its
// own, the sum, and its chunk of what others send. The most that any of the ranks has.
int contributions_kept_for_nccl(int shards, int ranks, bool any_order);

// Points of a collective where a test may end a rank: see tests/unit/comm and tests/world.
enum class CommPoint { before_send, after_send, before_receive, after_receive, before_add, after_add };

// From a rank to a rank of another machine, and of a rank in all.
constexpr int kMostConnections = 16, kMostConnectionsOfRank = 128;
// In a mesh of so many ranks: `wanted`, or as many as kMostConnectionsOfRank allows, but one at least.
int connections_to_rank(int wanted, int ranks);

struct EndpointOptions {
  std::string bind_address = "127.0.0.1";
  std::string secret{};  // the job's token: both sides of every connection prove that they know it, and never send it
  // After that proof the bytes between machines travel as they are, not encrypted: for closed networks. All ranks of a
  // mesh must agree. Unix sockets are plain in either case.
  bool plain_data = false;
  Transport transport = Transport::tcp;
  NcclSite nccl{};               // of Transport::nccl; its device serves one communicator at a time
  bool by_unix_sockets = true;   // between processes of this machine, which is faster; else by TCP as between machines
  int connections = 1;           // to each rank of another machine, of transport tcp: see connections_to_rank()
  bool by_shared_memory = true;  // between those that Unix sockets connect: they read large frames where these lie
  std::chrono::milliseconds operation_deadline{30'000};  // of every collective, send and receive: then PeerLost
  // For tests: called on the thread that moves the communicator's frames; may throw, which kills the communicator.
  std::function<void(CommPoint)> on_point{};
};

// Bytes of frames between ranks, without what encryption and the network add.
struct Traffic {
  std::uint64_t sent = 0, received = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

class Endpoint {
 public:
  explicit Endpoint(EndpointOptions options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  PeerAddress address() const;
  // What all communicators of this endpoint have sent and received until now. Any thread. nullopt: this transport's
  // library does not count.
  std::optional<Traffic> traffic() const;

  // Connects to every rank of the plan; several generations may be under way at once, from several threads. Blocks
  // until all connections are up and proven. PeerLost names the ranks that are missing at the deadline, and says so at
  // once when `cancel` is requested. The endpoint must outlive the communicator.
  std::unique_ptr<Communicator> connect(const MeshPlan& plan, std::chrono::milliseconds deadline,
                                        std::stop_token cancel = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::comm
