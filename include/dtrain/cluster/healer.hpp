// Keeps a cluster as it is wanted: looks at it, lets reconcile() decide, and carries the decision out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/reconcile.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

// The cluster from inside: its head, and the job that runs on it.
class ClusterInside {
 public:
  virtual ~ClusterInside() = default;
  // What the head and the job say; nullopt: they are not to be asked. Throws Stopped alone.
  virtual std::optional<TagSyncView> look(const Fleet& fleet) = 0;
  virtual void add(const std::string& host) = 0;  // these two throw Error
  virtual void remove(const std::string& host) = 0;
  // Announces the fleet, whose tags hold the queue, stops the job with a checkpoint, and says what became of it.
  virtual std::string stop_job(const Fleet& fleet) = 0;
};

// One thread. A Healer may be killed at any moment: another one, or the next one, continues from the tags.
class Healer {
 public:
  // request_of: what `up` was asked for, from the options in the fleet's tags. `holder`: names this reconciler among
  // others, without blanks. `inside` must outlive it.
  Healer(AwsContext context, std::string cluster, std::string holder,
         std::function<ClusterRequest(const Fleet&)> request_of, ClusterInside& inside,
         std::function<UnixTime()> clock);

  struct Look {
    bool acts = false;                 // false: another reconciler acts
    std::string why_not{};             // why it does not act
    std::vector<HealEvent> events{};   // what was done, and what failed
    std::vector<std::string> waits{};  // what is wanted and cannot be done now
    bool hurries = false;              // the next look is due in some seconds
  };
  // One look. Throws UsageError for a cluster that does not exist or that Amazon EMR runs, DataError for a wish that is
  // nonsense, and whatever AwsCalls throws while it looks; what fails while it acts is an event.
  Look look();
  // Sets the budget with the next look that acts; nullopt: no limit.
  void want_budget(std::optional<double> dollars) { wanted_budget_ = dollars; }
  // Lets another reconciler act at once, by calls that a signal does not stop. Throws nothing: a lease also ends by
  // itself.
  void leave(net::AwsCalls& last) noexcept;

 private:
  void require_ec2(const Fleet& fleet) const;
  bool take_lease(Fleet& fleet, Look& look);
  Wish read_wish(const Fleet& fleet, const ClusterRequest& request);
  // Reads spot_ if that is due. Returns why it could not be read; empty: it could.
  std::string read_spot_again(std::vector<std::string> types, UnixTime now);
  NodePrice price_of(const Fleet& fleet, UnixTime now, Look& look);
  // Counts what is spent of the budget, and returns it if that is all; empty: it is not. A warning becomes an event.
  // The fleet's tags then say it.
  std::string count_spending(Fleet& fleet, const Wish& wish, UnixTime now, Look& look);
  // Reads account_ if that is due. Returns why it could not be read; empty: it could.
  std::string read_account_again(const ClusterRequest& request, UnixTime now);
  Sick read_sick(const Fleet& fleet, const std::optional<TagSyncView>& job, UnixTime now);
  std::string try_to_carry_out(const HealAction& action, const Fleet& fleet, const ClusterRequest& request, Wish& wish,
                               UnixTime now);
  std::string carry_out(const HealAction& action, const Fleet& fleet, const ClusterRequest& request, Wish& wish,
                        UnixTime now);
  std::string restore_head(const Fleet& fleet, ClusterRequest request, const Wish& wish);
  std::string start(const HealAction& action, const Fleet& fleet, const ClusterRequest& request, const Wish& wish,
                    UnixTime now);
  Fleet read() const;
  void write(const Fleet& fleet, Tags tags, const std::string& holder);

  AwsContext context_;
  std::string cluster_, holder_;
  std::function<ClusterRequest(const Fleet&)> request_of_;
  ClusterInside& inside_;
  std::function<UnixTime()> clock_;
  std::optional<std::optional<double>> wanted_budget_{};  // until AWS shows it
  Spending written_{};                                    // last, which AWS may not show yet
  SpotPrices spot_{};
  std::vector<std::string> spot_types_{};  // whose prices were read
  UnixTime spot_until_{0};
  std::string spot_problem_{};
  HealMemory memory_{};
  std::vector<NodeHealth> health_{};  // as AWS showed it
  UnixTime health_at_{0}, account_until_{0};
  std::optional<Account> account_{};
  std::string account_problem_{};
  std::vector<std::pair<UnixTime, Node>> started_{};  // AWS may not show them yet
  bool may_hold_lease_ = false;
};

// Writes down what the machines have cost, because AWS forgets it: an hour after their end, and when they start again.
void write_spending(net::AwsCalls& aws, const Fleet& fleet, const Spending& spending);
// Takes a worker that leaves on purpose out of the wish, once.
void count_out(net::AwsCalls& aws, const Fleet& fleet, const Node& node);

}  // namespace dtrain::cluster
