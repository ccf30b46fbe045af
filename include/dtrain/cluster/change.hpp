// What changes a cluster: each of these may be run again after it was cut short, at any point, and goes on from what
// is there.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster {

// What a change needs besides what it changes.
struct Work {
  net::AwsCalls& aws;
  std::function<void(const std::string&)> say = [](const std::string&) {};  // one line for a person, from any thread
  bool wait = true;                                                         // until the instances run, or are gone
  std::chrono::seconds patience{900};                                       // for that
};

// What was asked of one pool, and came of it.
struct Attempt {
  Pool pool{};
  int wanted = 0, got = 0;
  std::string code{}, message{};  // why not all; empty where none is known
};

struct Launched {
  std::vector<Attempt> attempts{};
  int wanted = 0, got = 0;
};

struct UpResult {
  Fleet fleet{};
  Launched workers{};
  bool changed = false;
};

// What a new cluster is made of.
struct Wish {
  std::string name{};
  Spec spec{};
  std::map<std::string, std::string> options{};  // the texts behind `spec`
  std::string bundle_sha256{};                   // of the program that nodes fetch
};

// Makes the cluster as the plan says. Throws AwsError; NoCapacity when fewer than the least number of workers could be
// had: a cluster that did not exist before is then gone again.
UpResult bring_up(const Work& work, const Wish& wish, const Account& account, Fleet fleet, const Plan& plan);

// Starts workers beside those that are there: `least` or more of `more`, else none. Throws NoCapacity.
struct AddResult {
  std::vector<Node> added{};
  Launched workers{};
};
enum class Belonging { elastic, base };  // they wait to join a job, or belong to `up`
AddResult add_workers(const Work& work, const Wish& wish, const Account& account, const Fleet& fleet, int more,
                      int least, Belonging belonging = Belonging::elastic);

// Starts a worker that is to take the place of `bad`, which stays; it belongs to `up`, or waits to join a job, as that
// one did. Where one was started before, that is returned. Throws NoCapacity.
Node start_replacement(const Work& work, const Wish& wish, const Account& account, const Fleet& fleet, const Node& bad);
// Gives the name of `bad` to `fresh`, where `up` counts on it, and ends `bad`. Returns the name that `fresh` has then.
std::string replace_node(const Work& work, const Fleet& fleet, const Node& bad, const Node& fresh);

// Ends these instances and nothing else, and waits until they are gone.
void end_instances(const Work& work, const std::vector<std::string>& instance_ids);

// Ends this node; its tags say so before and after.
void end_node(const Work& work, const Node& node);

// What is left of a cluster.
struct Leftover {
  std::string kind{}, id{}, why{};
};
struct Kept {
  std::string file_system{};
  double monthly = 0;  // US dollars
};
struct DownResult {
  int instances = 0;                   // that this ended
  std::vector<std::string> removed{};  // ids of the rest
  std::vector<Kept> kept{};
  std::vector<Leftover> leftover{};  // should be gone and is not
};
// Ends all of the cluster. What it cannot remove is listed, not thrown.
DownResult bring_down(const Work& work, const std::string& name, bool delete_storage);

// Everything that carries the cluster's tag, but instances that end, and what IAM has under its path.
std::vector<Leftover> sweep(net::AwsCalls& aws, const std::string& name);

class NoCapacity : public RemoteError {
 public:
  NoCapacity(const std::string& what, std::string hint, Launched launched)
      : RemoteError(what, std::move(hint)), launched_(std::move(launched)) {}
  std::string_view kind() const override { return "capacity"; }
  std::vector<std::pair<std::string, std::string>> details() const;  // what each pool gave, for a program
  const Launched& launched() const { return launched_; }

 private:
  Launched launched_;
};

}  // namespace dtrain::cluster
