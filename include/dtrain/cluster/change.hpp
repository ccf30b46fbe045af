// Operations that change a cluster. Each of them may be interrupted at any point; run again, it continues from what
// exists.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster {

// What every operation needs: the AWS calls, where progress is reported, and how long to wait.
struct AwsContext {
  net::AwsCalls& aws;
  std::function<void(const std::string&)> say = [](const std::string&) {};  // one line for the user, from any thread
  bool wait = true;                    // whether to wait until instances run, or are terminated
  std::chrono::seconds patience{900};  // limit of that wait
};

// The result of one request to one pool.
struct Attempt {
  Pool pool{};
  int wanted = 0, got = 0;        // machines
  std::string code{}, message{};  // why fewer were granted; empty: unknown
};

struct Launched {
  std::vector<Attempt> attempts{};
  int wanted = 0, got = 0;        // workers, as which machines count
  std::set<std::string> ended{};  // ids of machines that were ended again, since their pool had too few
};

struct UpResult {
  Fleet fleet{};
  Launched workers{};
  bool changed = false;
};

// The desired cluster: its name, its specification and the program its nodes fetch.
struct ClusterRequest {
  std::string name{};
  Spec spec{};
  std::map<std::string, std::string> options{};  // the texts of the options behind `spec`
  std::string bundle_sha256{};                   // hash of the program archive that nodes fetch
  std::string admission{};                       // the admission secret of the cluster, once its group is there
  bool one_of_regions = false;                   // another region may have what this one lacks
  std::optional<double> budget{};                // US dollars, 0 for no limit; nullopt: as the wish has it
  std::string prices{};                          // prices_text() for the group's tag; empty: the tag stays
};

// Throws UsageError if the nodes' user data or the tags of the options would be larger than EC2 allows, and for tags of
// the user that not all services take.
void check_request(const ClusterRequest& request, const Account& account);

// Creates the cluster as the plan says. Throws AwsError, or NoCapacity if fewer than the minimum number of workers
// could be started; a cluster that did not exist before is then removed again. With `one_of_regions`, this also holds
// for a quota that does not suffice, and for what an interrupted `up` began.
UpResult bring_up(const AwsContext& context, const ClusterRequest& request, const Account& account, Fleet fleet,
                  const Plan& plan);

// Throws UsageError that names what the cluster lacks for further workers: group, launch template or a running head.
void require_complete(const Fleet& fleet);

// Starts at least `least` and at most `more` further workers, or none; machines that count as several may count as a
// few more. Throws NoCapacity. `replaced`: id of the instance in whose place they come; empty: none. What an
// interrupted call has started in its place is taken first; without `replaced`, the elastic workers of an interrupted
// call.
struct AddResult {
  std::vector<Node> added{};
  Launched workers{};
};
enum class NodeLifecycle { elastic, base };  // elastic: joins and leaves jobs by its tags; base: started by `up`, stays
AddResult add_workers(const AwsContext& context, const ClusterRequest& request, const Account& account,
                      const Fleet& fleet, int more, int least, NodeLifecycle lifecycle = NodeLifecycle::elastic,
                      const std::string& replaced = {});

// Starts a worker that is to replace `bad`, which stays for now. The new worker has the lifecycle of `bad`. If an
// earlier call started one, that node is returned. Throws NoCapacity.
Node start_replacement(const AwsContext& context, const ClusterRequest& request, const Account& account,
                       const Fleet& fleet, const Node& bad);
// Gives the name of `bad` to `fresh` if it is a base worker, and terminates `bad`. Returns the resulting name of
// `fresh`.
std::string replace_node(const AwsContext& context, const Fleet& fleet, const Node& bad, const Node& fresh);

// Terminates these instances and waits until they are gone.
void end_instances(const AwsContext& context, const std::vector<std::string>& instance_ids);

// Terminates this node; its tags show it before and after.
void end_node(const AwsContext& context, const Node& node);

// A resource that still exists after the cluster was removed.
struct Leftover {
  std::string kind{}, id{}, why{};
};
struct Kept {
  std::string file_system{};
  double monthly = 0;  // US dollars
};
struct [[nodiscard]] DownResult {
  int instances = 0;                   // terminated by this call
  std::vector<std::string> removed{};  // ids of all other removed resources
  std::vector<Kept> kept{};
  std::vector<Leftover> leftover{};  // resources that could not be removed
  bool saw_all = true;               // false: these keys may not read EFS or IAM
};
// Removes the whole cluster. Resources that cannot be removed are listed, not thrown. `known`: its name, and what AWS
// may not show yet.
DownResult bring_down(const AwsContext& context, const Fleet& known, bool delete_storage);

// Everything that carries the cluster's tag, except for instances that are terminating, and what IAM has under the
// cluster's path. `known`: its name, and the options that say whether it has file systems of FSx.
std::vector<Leftover> sweep(net::AwsCalls& aws, const Fleet& known);

class NoCapacity : public RemoteError {
 public:
  // `left`: what stays: what could not be removed again, or the whole cluster where it is not of this `up` alone.
  NoCapacity(const std::string& what, std::string hint, Launched launched, std::vector<Leftover> left = {})
      : RemoteError(what, std::move(hint)), launched_(std::move(launched)), left_(std::move(left)) {}
  std::string_view kind() const override { return "capacity"; }
  std::vector<std::pair<std::string, std::string>> details() const;  // the result of each pool, for programs
  const Launched& launched() const { return launched_; }
  const std::vector<Leftover>& left() const { return left_; }

 private:
  Launched launched_;
  std::vector<Leftover> left_;
};

}  // namespace dtrain::cluster
