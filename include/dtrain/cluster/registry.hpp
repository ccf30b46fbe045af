// The nodes that a head knows of, and those that failed to become nodes. Pure: no clock, no socket.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/admission.hpp>

namespace dtrain::cluster {

struct NodeFacts {  // what a node says of itself
  Identity identity;
  std::string name{};             // "w0003"; the instance's id where its tags are not shown to it
  std::string launch_template{};  // that it was launched from; empty: it does not know
  int gpus = 0;
};
Json to_json(const NodeFacts& facts);
NodeFacts node_facts_from_json(const Json& json);  // throws DataError

struct NodeEntry {
  NodeFacts facts;
  bool connected = false;
  std::chrono::system_clock::time_point since{};  // it registered, or was lost
};

struct NodeFailure {
  std::string address, stage, log{};  // the last of what it said
  int exit_code = 0;
  std::chrono::system_clock::time_point at{};
};
// The body of a node's report: "ADDRESS STAGE CODE", then its log. nullopt: it is none.
std::optional<NodeFailure> parse_failure(std::string_view text);

class Registry {
 public:
  using WallTime = std::chrono::system_clock::time_point;
  // A node that comes again keeps its place; another one with its address takes it.
  void join(NodeFacts facts, WallTime now);
  void lose(const std::string& address, WallTime now);
  void rename(const std::string& instance_id, const std::string& name);
  void forget(const std::string& address);  // it is to go, or has gone for good
  void fail(NodeFailure failure);

  // In the order in which they first came, the head's own first.
  const std::vector<NodeEntry>& nodes() const { return nodes_; }
  const std::vector<NodeFailure>& failures() const { return failures_; }
  // By address, name, instance id, or "deeplearning-workerN"; nullptr: nobody is called so.
  const NodeEntry* find(const std::string& word) const;
  std::vector<std::string> addresses() const;

 private:
  std::vector<NodeEntry> nodes_;
  std::vector<NodeFailure> failures_;
};

}  // namespace dtrain::cluster
