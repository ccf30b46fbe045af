// Stops the machines of a cluster, which keep their disks and private addresses, and starts them again. Either may be
// interrupted at any point; run again, it continues from what it finds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/prices.hpp>

namespace dtrain::cluster {

namespace tag {
// On the security group: since when the user has the cluster stopped; empty or missing: it is to run.
inline constexpr const char* kStopped = "dtrain:stopped";
}  // namespace tag

// Whether the user has the cluster stopped, also while its machines are still stopping.
bool is_stopped(const Fleet& fleet);
// Writes that down, into `fleet` too: reconcilers and the queue of jobs then start nothing.
void note_stopped(net::AwsCalls& aws, Fleet& fleet, bool stopped);
// Why EC2 cannot stop this machine; empty: it can.
std::string why_not_stopped(const Node& node);

// A machine that goes on, or stays off, and what the user can do about it.
struct Unmoved {
  Node node{};
  std::string why{}, hint{};
};
struct [[nodiscard]] PowerResult {
  Fleet fleet{};                // afterwards
  std::vector<Node> changed{};  // machines that this call stopped or started
  std::vector<Unmoved> unmoved{};
};
// Both wait, unless the context says otherwise, until no machine is between two states. Throw whatever AwsCalls throws,
// RemoteError if that takes longer than the context's patience, and Stopped after a signal.
PowerResult stop_machines(const AwsContext& context, const Fleet& fleet);
// The head starts first: where it cannot, its error is thrown and no worker is started.
PowerResult start_machines(const AwsContext& context, const Fleet& fleet);

// The disks of stopped machines, which cost money as long as they exist.
struct StoppedDisks {
  int machines = 0, gigabytes = 0;
  std::optional<double> monthly{};  // US dollars; nullopt: unknown
  std::string text() const;  // "the disks of 3 stopped machines (24 GB) cost $1.92 a month"; empty: none is stopped
};
StoppedDisks read_stopped_disks(net::AwsCalls& aws, const Fleet& fleet, const PriceList& prices);

// Types among those of the fleet with disks in the machine itself, whose content is lost when it stops. Empty also
// without the right to read types.
std::vector<std::string> types_with_local_disks(net::AwsCalls& aws, const Fleet& fleet);

}  // namespace dtrain::cluster
