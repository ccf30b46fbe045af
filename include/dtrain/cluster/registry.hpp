// The nodes that a head knows, and machines that failed to become nodes. Pure: no clock, no socket.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/admission.hpp>

namespace dtrain::cluster {

struct NodeFacts {  // reported by the node itself
  Identity identity;
  std::string name{};             // "w0003"; the instance's id if its tags are not visible to it
  std::string launch_template{};  // the template it was launched from; empty: unknown
  int gpus = 0;
};
Json to_json(const NodeFacts& facts);
NodeFacts node_facts_from_json(const Json& json);  // throws DataError, also if no honest node would say so

struct NodeEntry {
  NodeFacts facts;
  bool connected = false;
  std::chrono::system_clock::time_point since{};  // when it registered or was lost
  Json report{};                                  // its latest Checkup; null: none, or it is lost
  std::chrono::system_clock::time_point reported{};
};

struct NodeFailure {
  std::string address, stage, log{};  // end of its log
  int exit_code = 0;
  std::chrono::system_clock::time_point at{};
};
// Parses the body of a node's report: "PROOF ADDRESS STAGE CODE", then its log. nullopt: another text or proof.
[[nodiscard]] std::optional<NodeFailure> parse_failure(std::string_view text, const std::string& proof);

class Registry {
 public:
  using WallTime = std::chrono::system_clock::time_point;
  // A node that registers again keeps its place. Another node with the same address replaces it.
  void join(NodeFacts facts, WallTime now);
  void lose(const std::string& address, WallTime now);
  // What a node reports of its machine. Throws DataError for what is no Checkup.
  void report(const std::string& address, const Json& checkup, WallTime now);
  void rename(const std::string& instance_id, const std::string& name);
  void forget(const std::string& address);  // it was removed from the cluster
  void fail(NodeFailure failure);

  // In the order of their first registration, the head first.
  const std::vector<NodeEntry>& nodes() const { return nodes_; }
  const std::vector<NodeFailure>& failures() const { return failures_; }
  // By address, name, instance id, or "deeplearning-workerN"; nullptr: not found.
  const NodeEntry* find(const std::string& word) const;
  std::vector<std::string> addresses() const;

 private:
  std::vector<NodeEntry> nodes_;
  std::vector<NodeFailure> failures_;
};

}  // namespace dtrain::cluster
