// What the head of a cluster knows: which instances belong to the cluster, which are registered, which ask to join, and
// how a health check goes. Pure: no clock, no socket, no thread; the caller gives all times.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/compat_files.hpp>
#include <dtrain/cluster/node_order.hpp>
#include <dtrain/cluster/registry.hpp>

namespace dtrain::net {
class Channel;
}

namespace dtrain::cluster {

class HeadState {
 public:
  HeadState(Identity own, const NodeOrder& order) : own_(std::move(own)), order_(order) {}

  const Identity& own() const { return own_; }

  // The answer to a request to join. `is_news`: the reason differs from that of the instance's last request.
  struct Answer {
    Admission admission;
    bool is_news = false;
  };
  Answer admit(const Identity& node, const std::string& peer_address);

  // The same decision, without a trace: for who has the token already.
  Admission may_register(const Identity& node, const std::string& peer_address) const;
  // Returns whether the address is new.
  bool register_node(NodeFacts facts, Registry::WallTime now);
  // Takes the instances that a user saw in the account, and forgets nodes that are neither among them nor connected.
  // Throws DataError.
  void announce(const Json& message);
  // What announce() takes, with the instances that belong to the cluster now: for a head that is started again. It does
  // not hold the queue, so that jobs run as soon as machines do that were stopped, before the next announcement.
  Json announced() const;
  // The node at this address was asked to power off; one that was silent may not have heard it.
  void send_away(const std::string& address) { sent_away_.insert(address); }
  void was_silent(const std::string& address) { sent_away_.erase(address); }
  // Addresses of the cluster's other machines, without those that were asked and have disconnected since.
  std::vector<std::string> still_there() const;
  // The node leaves the cluster. Returns its address; nullopt: no such node.
  std::optional<std::string> remove(const std::string& host);

  Registry& registry() { return registry_; }
  // What nodes are told about the cluster.
  ClusterFacts facts() const;
  // The document dtrain.cluster-nodes/1.
  Json list() const;

 private:
  const Identity own_;
  const NodeOrder& order_;
  std::string launch_template_;
  std::string hold_;                              // why no job of the queue may run; empty: jobs may
  std::map<std::string, std::string> announced_;  // {instance id: address}
  std::map<std::string, std::string> waiting_;    // {instance id: reason why it is not admitted}
  std::set<std::string> sent_away_;               // addresses
  Registry registry_;
};

// Starts that were forwarded to nodes, until these answer or are lost.
class ForwardedStarts {
 public:
  struct Start {
    const net::Channel* node;  // names the node's connection
    std::string host;
    std::weak_ptr<net::Channel> client;
    Json id;  // the client's
  };
  // Returns the number by which the node answers.
  std::int64_t add(Start start);
  // nullopt: there is none with this number any more.
  std::optional<Start> take(std::int64_t number);
  std::vector<Start> take_all_of(const net::Channel* node);

 private:
  std::map<std::int64_t, Start> starts_;
  std::int64_t last_ = 0;
};

// One health check of all nodes: which have not answered, and the answers of the others.
class CheckRound {
 public:
  // `now`: wall clock, nanoseconds.
  void ask(const std::string& instance_id, std::int64_t now) { waiting_[instance_id] = now; }
  // `message`: {"time_ns": the node's clock when it was asked, "took_ns", "report"}. Throws DataError.
  void hear(const std::string& instance_id, const Json& message, std::int64_t now);
  // The node will not answer any more.
  void lose(const std::string& instance_id) { waiting_.erase(instance_id); }
  bool is_over() const { return waiting_.empty(); }
  // {instance id: {"report", "clock_offset_seconds", "clock_within_seconds"}} of the nodes that answered.
  const Json& reports() const { return reports_; }

 private:
  std::map<std::string, std::int64_t> waiting_;
  Json reports_ = Json::object();
};

}  // namespace dtrain::cluster
