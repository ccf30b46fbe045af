#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/power.hpp>
#include <dtrain/cluster/regions.hpp>
#include <dtrain/cluster/tagged_prices.hpp>
#include <dtrain/cluster/up_lease.hpp>
#include <dtrain/cluster/wish.hpp>

#include "ec2_fields.hpp"
#include "file_systems.hpp"
#include "head_role.hpp"
#include "launch.hpp"
#include "parallel.hpp"
#include "plan/boot.hpp"
#include "plan/ended.hpp"
#include "plan/notes.hpp"
#include "resources.hpp"
#include "rules.hpp"
#include "terminate.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::chrono::seconds kToLetGo{5}, kUntilOthersShow{2};  // until AWS shows what another `up` writes

// One `up`. Each step adds to what exists; the steps run one after the other on the caller's thread, and the
// independent calls of a step in parallel. Every call is idempotent, so an `up` that was interrupted, or runs twice at
// once, continues from what exists.
class Provisioner {
 public:
  Provisioner(const AwsContext& context, const ClusterRequest& request, const Account& account, Fleet fleet,
              const Plan& plan)
      : context_(context),
        request_(request),
        account_(account),
        fleet_(std::move(fleet)),
        plan_(plan),
        system_(account.file_system) {}

  UpResult run() {
    was_there_ = fleet_.exists() && !(request_.one_of_regions && is_only_begun(fleet_));
    if (is_only_begun(fleet_)) take_begun();
    try {
      make_all();
    } catch (const net::AwsError& problem) {
      if (request_.one_of_regions && problem.facts().problem == net::AwsProblem::quota) {
        give_up(problem.what(), problem.hint(), launched_);
      }
      throw net::AwsError(problem.what(), and_what_remains(problem.hint()), problem.facts());
    } catch (const NoCapacity&) {
      throw;
    } catch (const RemoteError& problem) {
      throw RemoteError(problem.what(), and_what_remains(problem.hint()));
    } catch (const UsageError& problem) {
      throw UsageError(problem.what(), and_what_remains(problem.hint()));
    }
    const bool changed = !plan_.actions.empty();
    Fleet fleet = changed ? read_fleet_with(context_.aws, fleet_) : std::move(fleet_);
    return {std::move(fleet), std::move(launched_), changed};
  }

  // After a failure: no other `up` has to wait until the lease ends.
  void let_go() const {
    if (!lease_.is_held() || !fleet_.group) return;
    net::AwsCalls last = context_.aws.after_stop(kToLetGo);
    std::ignore = attempt([&] { set_tags(last, {fleet_.group->id}, {{tag::kUp, ""}}); });
  }

 private:
  void make_all() {
    make_surroundings();
    make_lustre();
    make_head();
    lease_.renew();
    make_mount_targets();
    make_template();
    make_head_template();
    lease_.renew();
    if (!make_workers()) {
      give_up(fmt::format("cluster {}: {} of {} workers could be started, and at least {} are required", request_.name,
                          launched_.got, launched_.wanted, least_workers(request_.spec)),
              "try later, or allow more: setting 'instance-type' A,B, setting 'spot' prefer, a smaller setting "
              "'min-workers'",
              launched_);
    }
    make_mount_targets();
    write_down();
    if (launched_.got > 0) end_doubles();
    if (context_.wait) wait_for_instances();
  }

  Fleet read_now() const { return read_fleet(context_.aws, request_.name); }

  // An `up` began the cluster and did not end. Where this one may remove it again, it must have been interrupted.
  void take_begun() {
    const auto pause = [] { pause_for(kUntilOthersShow); };
    if (was_there_) return lease_.take_free(fleet_);
    if (!lease_.take([this] { return read_now(); }, context_.aws.region(), pause)) return look_again();
    fleet_ = read_now();
    plan_ = plan_up(request_.spec, request_.options, account_, fleet_);
  }

  // A failed `up` leaves what it has made, unless a `down` has removed it meanwhile; machines among that cost money.
  std::string and_what_remains(const std::string& hint) const {
    if (!fleet_.exists()) return hint;
    Fleet now;  // stays empty where AWS does not answer
    net::AwsCalls last = context_.aws.after_stop(kToLetGo);
    std::ignore = attempt([&] { now = read_fleet(last, request_.name); });
    return fmt::format("{}{}{}: the same command continues, and dtrain cluster down {} removes everything", hint,
                       hint.empty() ? "" : "; ", remains_text(fleet_, now, account_.prices), request_.name);
  }

  // These steps do not depend on each other, except for those that need the group.
  void make_surroundings() {
    std::vector<std::function<void()>> pieces;
    const auto when = [&](Step step, std::function<void()> piece) {
      if (plan_.has(step)) pieces.push_back(std::move(piece));
    };
    when(Step::key_pair, [this] { import_key(context_.aws, request_, account_); });
    when(Step::placement_group, [this] { make_placement_group(context_.aws, request_, account_); });
    when(Step::role, [this] {
      make_roles(context_.aws, request_, account_);
      for (const std::string& name : {profile_of_head(request_, account_), profile_of_workers(request_, account_)}) {
        if (!name.empty()) context_.say("role and instance profile " + name);
      }
    });
    pieces.push_back([this] { make_security_group(); });
    do_all(pieces);
    request_.admission = admission_secret(context_.aws, *fleet_.group);
  }

  // FSx looks at the rules of the group. No machine is started before it can mount the file system.
  void make_lustre() {
    if (shared_kind(request_.spec) != SharedKind::new_lustre) return;
    if (plan_.has(Step::file_system)) {
      system_ = cluster::make_lustre(context_.aws, request_, account_, fleet_.group->id, context_.patience);
    }
    if (!system_ || system_->state == "AVAILABLE") return;
    context_.say(fmt::format("file system {} of FSx for Lustre, which takes about ten minutes", system_->id));
    if (context_.wait) wait_for_lustre(context_.aws, system_->id, context_.patience, [this] { lease_.renew(); });
  }

  void make_security_group() {
    if (!fleet_.group) {
      Account with_lease = account_;
      with_lease.tags.merge(lease_.begin());
      GroupMade made = make_group(context_.aws, request_, with_lease);
      context_.say("security group " + made.group.id);
      fleet_.group = std::move(made.group);
      if (!made.is_new) look_again();
    }
    std::vector<std::function<void()>> pieces;
    if (plan_.has(Step::ssh_rule)) {
      pieces.push_back([this] { set_ssh_rule(context_.aws, *fleet_.group, account_.ssh_source); });
    }
    if (plan_.has(Step::own_rules)) {
      pieces.push_back([this] { set_own_rules(context_.aws, *fleet_.group, request_.spec.efa); });
    }
    if (plan_.has(Step::file_system) && shared_kind(request_.spec) == SharedKind::new_efs) {
      pieces.push_back([this] {
        system_ = make_efs(context_.aws, request_.name, account_, fleet_.group->id);
        context_.say("file system " + system_->id);
      });
    }
    do_all(pieces);
  }

  // Another `up` runs concurrently, or has ended since the fleet was read: from here on both see the same cluster and
  // make the same calls, which take effect once. The cluster is not only this one's, so give_up() removes nothing of
  // it.
  void look_again() {
    was_there_ = true;
    lease_.forget();
    const SecurityGroup taken = *fleet_.group;
    fleet_ = read_now();
    if (!fleet_.group) fleet_.group = taken;
    plan_ = plan_up(request_.spec, request_.options, account_, fleet_);
  }

  LaunchOrder order_of(const std::vector<std::string>& names) {
    return {fleet_.group->id, launch_number(fleet_, names), names, {}, false, [this] { lease_.renew(); }};
  }

  void make_head() {
    if (fleet_.head()) return;
    const std::string script = boot_script(request_, account_, NodeBoot::Role::head, {}, system_);
    const LaunchOrder order = order_of({"head"});
    Launched attempts;
    std::optional<Node> started;
    try {
      started =
          launch_head(context_, order, {request_, account_, *fleet_.group, script, fleet_.tagged_head()}, attempts);
    } catch (const NoCapacity& problem) {
      give_up(problem.what(), problem.hint(), problem.launched());
    }
    Node head = std::move(*started);
    head.name = "head";
    head.role = Role::head;
    context_.say(fmt::format("head {} at {}", head.instance_id, head.private_ip));
    finished_ = std::max(finished_, order.number + 1);
    started_.insert(head.instance_id);
    fleet_.nodes.insert(fleet_.nodes.begin(), std::move(head));
  }

  void make_mount_targets() {
    if (plan_.has(Step::mount_target)) cluster::make_mount_targets(context_, *system_, account_, fleet_);
  }

  void make_template() {
    const std::string head = fleet_.head()->private_ip;
    if (fleet_.launch_template && fleet_.tagged_head() == head) return;
    const TemplateContent content{*fleet_.group,
                                  boot_script(request_, account_, NodeBoot::Role::worker, head, system_)};
    make_or_renew(template_of_workers(request_, account_, content), fleet_.launch_template);
  }

  // By which workers start the next head at the address of this one.
  void make_head_template() {
    const Node& head = *fleet_.head();
    if (!workers_replace_head(request_.spec)) return;
    if (fleet_.head_template && fleet_.tagged_head() == head.private_ip) return;
    const std::string script = boot_script(request_, account_, NodeBoot::Role::head, {}, system_);
    make_or_renew(template_of_head(request_, account_, *fleet_.group, script, head), fleet_.head_template);
  }

  void make_or_renew(const TemplateOrder& order, std::optional<LaunchTemplate>& there) {
    if (there) {
      renew_template(context_.aws, order, *there);
    } else {
      there = cluster::make_template(context_.aws, order);
    }
    context_.say("launch template " + there->id);
  }

  // Returns false if there are too few.
  bool make_workers() {
    to_name_ = plan_.to_name;
    if (plan_.to_start.empty()) return true;
    const LaunchOrder order = order_of(plan_.to_start);
    const int there = request_.spec.workers - static_cast<int>(plan_.to_start.size());
    const int least = std::max(least_workers(request_.spec) - there, 0);
    auto ids = launch(order, {{tag::kLaunch, order.launch_tag()}, {tag::kBase, "yes"}}, std::max(least, 1));
    std::ranges::sort(ids);
    for (std::size_t at = 0; at < ids.size(); ++at) to_name_[ids[at]] = plan_.to_start[at];
    started_.insert(ids.begin(), ids.end());
    remember(ids);
    finished_ = std::max(finished_, order.number + 1);
    return launched_.got >= least;
  }

  std::vector<std::string> launch(const LaunchOrder& order, const Tags& tags, int least) {
    try {
      return launch_workers(context_, order, *fleet_.launch_template,
                            worker_pools(request_.spec, account_, fleet_.head()->zone), tags, least, launched_);
    } catch (const net::AwsError& problem) {
      const std::string& code = problem.facts().code;
      const bool is_answer = !code.empty() && !launched_.attempts.empty() && launched_.attempts.back().code == code;
      if (is_answer) write_launches(order.number + 1);
      throw;
    }
  }

  // EC2 repeats what it answered to a client token, also a refusal: the next `up` must be another launch. Without an
  // answer the token stays, for machines may have started. A failure here ends no `up`.
  void write_launches(int next) const {
    const auto write = [&] { set_tags(context_.aws, {fleet_.group->id}, {{tag::kLaunches, std::to_string(next)}}); };
    if (const auto problem = attempt(write)) context_.say(problem->what());
  }

  // Keeps the zones of new workers for their mount targets.
  void remember(const std::vector<std::string>& ids) {
    if (ids.empty() || launched_.attempts.empty()) return;
    for (const std::string& id : ids) {
      fleet_.nodes.push_back({.name = to_name_[id],
                              .base = true,
                              .instance_id = id,
                              .state = "pending",
                              .zone = launched_.attempts.back().pool.zone,
                              .type = launched_.attempts.back().pool.type,
                              .weight = launched_.attempts.back().pool.weight});
    }
  }

  // What this `up` has just ended may show for a moment.
  bool is_of_others() const {
    const auto look = [this] { return cluster::is_of_others(read_now(), fleet_, launched_.ended, has_written_); };
    if (!look()) return false;
    pause_for(kUntilOthersShow);
    return look();
  }

  // A cluster that this `up` has begun is removed again, unless another `up` goes on with it by now.
  [[noreturn]] void give_up(const std::string& what, std::string hint, Launched launched) {
    hint = capacity_hint(std::move(hint), launched);
    if (was_there_ || is_of_others()) {
      if (finished_ > 0) write_launches(finished_);
      throw NoCapacity(what, and_what_remains(hint), std::move(launched),
                       {{"cluster", request_.name, "it was there before, or another `up` has made it"}});
    }
    lease_.forget();
    DownResult down = bring_down(context_, fleet_, may_delete_storage(context_.aws, fleet_, request_));
    const bool is_clean = down.leftover.empty();
    if (!is_clean) hint += fmt::format("; then dtrain cluster down {}", request_.name);
    throw NoCapacity(
        fmt::format(
            "{}; everything that was made for it has been removed{}", what,
            is_clean ? "" : fmt::format(", except for {} {}", down.leftover.front().kind, down.leftover.front().id)),
        hint, std::move(launched), std::move(down.leftover));
  }

  void write_down() {
    std::vector<std::function<void()>> pieces;
    int last = last_node(fleet_);
    for (const auto& [id, name] : to_name_) {
      last = std::max(last, worker_number(name).value_or(0));
      pieces.push_back([this, id = id, name = name] { set_tags(context_.aws, {id}, name_tags(request_.name, name)); });
    }
    Tags noted;
    if (finished_ > 0) noted = {{tag::kLaunches, std::to_string(finished_)}, {tag::kLastNode, std::to_string(last)}};
    if (const std::string& head = fleet_.head()->private_ip; fleet_.tagged_head() != head) noted[tag::kHead] = head;
    if (started_.contains(fleet_.head()->instance_id) && is_stopped(fleet_)) noted[tag::kStopped] = "";
    if (plan_.has(Step::options)) noted.merge(option_tags(request_.options));
    if (const std::string& prices = request_.prices; !prices.empty() && fleet_.group->tags[tag::kPrices] != prices) {
      noted[tag::kPrices] = prices;
    }
    if (lease_.is_held()) noted[tag::kUp] = "";
    has_written_ = true;
    pieces.push_back([this] { write_wish(context_, fleet_, request_); });
    if (!noted.empty()) pieces.push_back([this, noted] { set_tags(context_.aws, {fleet_.group->id}, noted); });
    do_all(pieces);
    lease_.forget();
  }

  void end_doubles() {
    const auto ended = cluster::end_doubles(context_, fleet_, to_name_, started_);
    for (const std::string& id : ended) started_.erase(id);
    if (!ended.empty()) fleet_ = read_fleet_with(context_.aws, fleet_);
  }

  void wait_for_instances() {
    wait_until(context_.patience, fmt::format("the instances of cluster {} run", request_.name), [&] {
      const Fleet shown = read_fleet(context_.aws, request_.name);
      note_ended(take_ended(fleet_, shown));
      const auto nodes = with_known(shown, fleet_).nodes;
      return std::ranges::none_of(nodes, [](const Node& node) { return node.state == "pending"; });
    });
  }

  void note_ended(const std::vector<Node>& ended) {
    for (const Node& node : ended) {
      if (node.role == Role::head) throw RemoteError(fmt::format("cluster {}: {}", request_.name, ended_text(node)));
      context_.say(ended_text(node));
      count_ended(node, started_.contains(node.instance_id), launched_);
    }
    const int base = counted_base(fleet_), least = least_workers(request_.spec);
    if (ended.empty() || base >= least) return;
    give_up(fmt::format("cluster {}: {} of {} workers stay, and at least {} are required: {}", request_.name, base,
                        request_.spec.workers, least, ended_text(ended.back())),
            "mend what EC2 names, or allow fewer: a smaller setting 'min-workers'", launched_);
  }

  const AwsContext& context_;
  ClusterRequest request_;
  const Account& account_;
  Fleet fleet_;
  Plan plan_;
  std::optional<FileSystem> system_;
  Launched launched_;
  bool was_there_ = false;
  bool has_written_ = false;  // this `up` has written the wish
  UpLease lease_{[this] { return aws_time(context_.aws); },
                 [this](const Tags& tags) { set_tags(context_.aws, {fleet_.group->id}, tags); }, context_.say};
  std::map<std::string, std::string> to_name_;  // instance id -> name
  std::set<std::string> started_;               // ids of the machines that this `up` has started
  int finished_ = 0;                            // number of the next launch; 0: no launch was made
};

}  // namespace

UpResult bring_up(const AwsContext& context, const ClusterRequest& request, const Account& account, Fleet fleet,
                  const Plan& plan) {
  Provisioner provisioner(context, request, account, std::move(fleet), plan);
  try {
    return provisioner.run();
  } catch (const Error&) {
    provisioner.let_go();
    throw;
  }
}

}  // namespace dtrain::cluster
