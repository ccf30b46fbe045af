#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include <dtrain/base/stats.hpp>
#include <dtrain/comm/all_reduce_baseline.hpp>
#include <dtrain/comm/tree.hpp>

#include "allreduce_simulation.hpp"
#include "bench/forked_ranks.hpp"
#include "cli/command.hpp"
#include "compressed_exchange.hpp"
#include "config/exchange/link_option.hpp"

namespace dtrain::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kTree = "tree", kPlainTree = "plain tree";

struct AllReduceBenchOptions {
  std::vector<double> ranks{2, 3, 4};
  double megabytes = 100;
  int rounds = 10;
  int mesh_ranks = 16;
  bool rounded = false;
  bool by_tcp = false;
  Compressions compressions;
  SimulationOptions simulation;
};

void bind(config::OptionSet& set, AllReduceBenchOptions& options) {
  set.group("Measurement");
  set.add_numbers("--ranks", options.ranks, "N,N,...",
                  "numbers of ranks to measure; each rank is a process on this machine");
  set.add("--megabytes", options.megabytes, "MB", "size of the float32 array that each rank contributes, in MB",
          config::more_than(0));
  set.add("--rounds", options.rounds, "N", "number of rounds; each round runs every algorithm once",
          config::at_least(1));
  set.add("--mesh-ranks", options.mesh_ranks, "N",
          "number of ranks for measuring how long connecting all of them takes; 0 skips this", config::between(0, 64));
  set.add("--by-tcp", options.by_tcp,
          "use TCP for dtrain's tree, as between machines, instead of Unix sockets; measure it encrypted and plain, as "
          "with --plain-data of a job");
  set.add("--bfloat16", options.rounded, "round values to bfloat16 before dtrain's tree sends them");
  bind_compressions(set, options.compressions);
  set.group("Simulation");
  set.add_numbers("--simulate", options.simulation.ranks, "N,N,...",
                  "simulate dtrain's tree on N ranks, at most 2048, instead of measuring it. Hosts take no time, "
                  "unless --ranks is given: an exchange between that many ranks here then measures it");
  config::add_link(set, "--link", options.simulation.link,
                   "bandwidth of each host's simulated link (kbit, mbit or gbit) and latency from host to host (us, ms "
                   "or s), such as 10gbit,50us");
  set.add("--unevenness", options.simulation.unevenness, "U",
          "how unequally TCP divides a simulated link among its connections: each has a weight from 1-U to 1; 0 for "
          "equal parts",
          config::between(0, 0.99));
  set.add("--shards", options.simulation.shards, "V",
          "leaves of the simulated tree, a power of two; 0: the smallest one that is no less than the ranks",
          config::at_least(0));
  set.add("--ranks-per-host", options.simulation.ranks_per_host, "N", "simulated ranks that share a link",
          config::at_least(1));
  set.add("--changes", options.simulation.changes,
          "also simulate how long workers that join, a lost worker and a lost coordinator hold up training: the real "
          "coordinator decides, over agents and workers that are modelled");
  set.add("--newcomers", options.simulation.newcomers, "N", "with --changes, number of workers that join at once",
          config::between(1, 2048));
  set.add("--state-megabytes", options.simulation.state_megabytes, "MB",
          "with --changes, size of the state that newcomers receive, in MB; 0: twice --megabytes, as with momentum",
          config::at_least(0));
  set.add("--plain-data", options.simulation.plain,
          "measure the time of hosts for a simulation without encryption, as with --plain-data of a job");
}

bool is_tree(std::string_view name) { return name == kTree || name == kPlainTree; }

struct Cost {
  double seconds = 0, cpu_seconds = 0;
};
constexpr std::size_t kNumbersOfCost = 2;

// What a step needs of one rank: its leaves, which are there already, added up here and then over all ranks.
class BenchmarkCase {
 public:
  // `plain`: null, or of the same ranks without encryption.
  BenchmarkCase(comm::Communicator& comm, comm::Communicator* plain, std::int64_t size, bool rounded)
      : comm_(comm),
        plain_(plain),
        shape_{.shards = comm::power_of_two_at_least(comm.size()), .size = size, .rounded = rounded ? size : 0},
        span_(comm::shards_of_rank(comm.rank(), comm.size(), shape_.shards)),
        sum_(static_cast<std::size_t>(size)),
        leaf_(static_cast<std::size_t>(span_.last - span_.first > 1 ? size : 0)),
        gloo_(comm::make_gloo_baseline(comm, std::string(bench::kLoopback), sum_)) {}

  Cost cost_of(const std::string& name) {
    comm_.all_gather({});
    const double cpu_begin = cpu_seconds();
    const Clock::time_point begin = Clock::now();
    if (is_tree(name)) {
      reduce_by_tree(name, false);
    } else {
      reduce_by_gloo(name);
    }
    return {std::chrono::duration<double>(Clock::now() - begin).count(), cpu_seconds() - cpu_begin};
  }

  // A sum of ones, before anything is measured.
  void check(const std::string& name) {
    std::ranges::fill(sum_, 1.0f);
    std::ranges::fill(leaf_, 1.0f);
    if (is_tree(name)) {
      reduce_by_tree(name, true);
    } else {
      reduce_by_gloo(name);
    }
    const auto expected = static_cast<float>(shape_.shards);
    const auto wrong = std::ranges::find_if(sum_, [&](float value) { return value != expected; });
    if (wrong == sum_.end()) return;
    throw Error(fmt::format("{} gives {} at {} where {} was expected", name, *wrong, wrong - sum_.begin(), expected));
  }

 private:
  void reduce_by_tree(const std::string& name, bool of_ones) {
    comm::Communicator& comm = name == kPlainTree ? *plain_ : comm_;
    const auto reduction = comm.begin_reduction(shape_, {});
    for (int shard = span_.first; shard < span_.last; ++shard) {
      const std::span<float> leaf = reduction->leaf(shard);
      if (of_ones) std::ranges::fill(leaf, 1.0f);
      reduction->ready(shard, 0, shape_.size);
    }
    comm::FloatBuffer sum = reduction->finish().sum;
    if (of_ones) std::ranges::copy(sum, sum_.begin());
    comm.recycle(std::move(sum));
  }

  void reduce_by_gloo(const std::string& name) {
    for (int more = span_.first + 1; more < span_.last; ++more) {
      for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += leaf_[i];
    }
    gloo_->all_reduce(name);
  }

  comm::Communicator& comm_;
  comm::Communicator* const plain_;
  const comm::ReductionShape shape_;
  const comm::ShardSpan span_;
  std::vector<float> sum_;   // Gloo adds up here
  std::vector<float> leaf_;  // every further leaf of a rank that has several
  const std::unique_ptr<comm::AllReduceBaseline> gloo_;
};

std::vector<std::string> contest_names(bool by_tcp) {
  std::vector<std::string> names{std::string(kTree)};
  if (by_tcp) names.emplace_back(kPlainTree);
  for (const std::string& name : comm::gloo_algorithms()) names.push_back(name);
  return names;
}

// Results of one algorithm, each list in ascending order: for every round the seconds of the slowest rank, and the
// processor time of all ranks.
struct Times {
  std::string name;
  std::vector<double> seconds, cpu_seconds;
  double median() const { return quantile(seconds, 0.5); }
};

struct Contest {
  int ranks = 0;
  std::vector<Times> times;                 // the tree first, then perhaps the plain tree
  std::vector<CompressedTimes> compressed;  // empty: not asked for
  const Times* plain_tree() const { return times[1].name == kPlainTree ? &times[1] : nullptr; }
  const Times& best_of_gloo() const {
    return *std::ranges::min_element(times.begin() + (plain_tree() ? 2 : 1), times.end(), {}, &Times::median);
  }
  // Above 1: the tree is faster.
  double ratio() const { return best_of_gloo().median() / times.front().median(); }
};

// Chunks that are sent and received by the rank that does most of it, relative to an all-reduce.
double byte_ratio(int ranks) {
  const int shards = comm::power_of_two_at_least(ranks);
  std::size_t pieces = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const comm::ShardSpan span = comm::shards_of_rank(rank, ranks, shards);
    pieces = std::max(pieces, comm::covering_nodes(span.first, span.last).size());
  }
  return static_cast<double>(pieces + 1) / 2;
}

std::int64_t floats_of(const AllReduceBenchOptions& options) {
  return static_cast<std::int64_t>(options.megabytes * 1e6 / sizeof(float));
}

Contest hold(int ranks, const AllReduceBenchOptions& options) {
  const std::vector<std::string> names = contest_names(options.by_tcp);
  const std::int64_t size = floats_of(options);
  const std::size_t runs = names.size() * static_cast<std::size_t>(options.rounds);
  const auto results =
      bench::run_forked(ranks, static_cast<int>(kNumbersOfCost * runs), kDeadline, [&](bench::ForkedRank& me) {
        comm::MeshPlan plan;
        const auto endpoint = me.make_endpoint(plan, !options.by_tcp);
        const auto comm = endpoint->connect(plan, kConnectDeadline);
        std::unique_ptr<comm::Endpoint> plain_endpoint;
        std::unique_ptr<comm::Communicator> plain;
        if (options.by_tcp) {
          comm::MeshPlan plain_plan;
          plain_endpoint = me.make_plain_endpoint(plain_plan, *comm);
          plain = plain_endpoint->connect(plain_plan, kConnectDeadline);
        }
        BenchmarkCase one(*comm, plain.get(), size, options.rounded);
        for (const std::string& name : names) one.check(name);
        for (std::size_t run = 0; run < runs; ++run) {
          const Cost cost = one.cost_of(names[run % names.size()]);
          me.numbers()[kNumbersOfCost * run] = cost.seconds;
          me.numbers()[kNumbersOfCost * run + 1] = cost.cpu_seconds;
        }
        comm->all_gather({});
      });
  Contest contest{ranks, {}, {}};
  for (const std::string& name : names) contest.times.push_back({name, {}, {}});
  for (std::size_t run = 0; run < runs; ++run) {
    Times& times = contest.times[run % names.size()];
    times.seconds.push_back(0);
    times.cpu_seconds.push_back(0);
    for (const std::vector<double>& of_rank : results) {
      times.seconds.back() = std::max(times.seconds.back(), of_rank[kNumbersOfCost * run]);
      times.cpu_seconds.back() += of_rank[kNumbersOfCost * run + 1];
    }
  }
  for (Times& times : contest.times) {
    std::ranges::sort(times.seconds);
    std::ranges::sort(times.cpu_seconds);
  }
  if (!options.compressions.empty()) {
    contest.compressed = measure_compressed(ranks, options.compressions, size, options.rounds, options.by_tcp);
  }
  return contest;
}

// Median over the rounds of the slowest rank's time from knowing all addresses to being connected to all.
double mesh_seconds(const AllReduceBenchOptions& options) {
  const auto results = bench::run_forked(options.mesh_ranks, options.rounds, kDeadline, [&](bench::ForkedRank& me) {
    comm::MeshPlan plan;
    const auto endpoint = me.make_endpoint(plan, !options.by_tcp);
    std::unique_ptr<comm::Communicator> comm = endpoint->connect(plan, kConnectDeadline);
    for (double& seconds : me.numbers()) {
      comm->all_gather({});
      ++plan.generation;
      const Clock::time_point begin = Clock::now();
      comm = endpoint->connect(plan, kConnectDeadline);
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    comm->all_gather({});
  });
  std::vector<double> seconds;
  for (int round = 0; round < options.rounds; ++round) {
    double slowest = 0;
    for (const std::vector<double>& of_rank : results)
      slowest = std::max(slowest, of_rank[static_cast<std::size_t>(round)]);
    seconds.push_back(slowest);
  }
  std::ranges::sort(seconds);
  return quantile(seconds, 0.5);
}

// Relative to the plain tree, which was measured.
double speed_of_encrypted(const Contest& contest) {
  return contest.plain_tree()->median() / contest.times.front().median();
}

Json document(const std::vector<Contest>& contests, std::optional<double> mesh, const AllReduceBenchOptions& options) {
  Json json = Json::object(
      {{"schema", "dtrain.bench-allreduce/1"}, {"megabytes", options.megabytes}, {"by_unix_sockets", !options.by_tcp}});
  Json rows = Json::array();
  for (const Contest& contest : contests) {
    Json algorithms = Json::array();
    for (const Times& times : contest.times) {
      algorithms.push_back(Json::object({{"algorithm", times.name},
                                         {"seconds", times.median()},
                                         {"seconds_low", quantile(times.seconds, 0.1)},
                                         {"seconds_high", quantile(times.seconds, 0.9)},
                                         {"cpu_seconds", quantile(times.cpu_seconds, 0.5)}}));
    }
    rows.push_back(Json::object({{"ranks", contest.ranks},
                                 {"algorithms", algorithms},
                                 {"best_of_gloo", contest.best_of_gloo().name},
                                 {"ratio", contest.ratio()},
                                 {"encrypted_speed", contest.plain_tree() ? Json(speed_of_encrypted(contest)) : Json()},
                                 {"byte_ratio", byte_ratio(contest.ranks)},
                                 {"compressed", compressed_json(contest.compressed)}}));
  }
  json["contests"] = rows;
  if (mesh) json["mesh"] = Json::object({{"ranks", options.mesh_ranks}, {"seconds", *mesh}});
  return json;
}

void answer(const Contest& contest, Reporter& reporter) {
  reporter.answer(fmt::format("{:>2} ranks{:>34}{:>10}{:>10}{:>10}", contest.ranks, "ms", "10 %", "90 %", "cpu ms"));
  for (const Times& times : contest.times) {
    const std::string name = (is_tree(times.name) ? "dtrain " : "gloo ") + times.name;
    reporter.answer(fmt::format("  {:<30}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}", name, 1e3 * times.median(),
                                1e3 * quantile(times.seconds, 0.1), 1e3 * quantile(times.seconds, 0.9),
                                1e3 * quantile(times.cpu_seconds, 0.5)));
  }
  reporter.answer(fmt::format("  the tree is {:.2f} times as fast as Gloo's best ({}), with {:.2f} times the bytes",
                              contest.ratio(), contest.best_of_gloo().name, byte_ratio(contest.ranks)));
  if (contest.plain_tree() != nullptr) {
    reporter.answer(
        fmt::format("  the encrypted tree has {:.2f} times the speed of the plain one", speed_of_encrypted(contest)));
  }
  if (!contest.compressed.empty()) answer_compressed(contest.compressed, reporter);
}

void check_ranks(const std::vector<double>& all) {
  for (const double ranks : all) {
    if (ranks < 2 || ranks > 64 || ranks != static_cast<int>(ranks)) {
      throw UsageError(fmt::format("--ranks: '{}' is not a whole number from 2 to 64", ranks));
    }
  }
}

// Options that a simulation like this one does not read.
void warn_of_idle_options(const config::OptionSet& set, bool changes, bool probes, Reporter& reporter) {
  struct Need {
    const char *option, *lack;
    bool is_met;
  };
  const Need needs[] = {{"newcomers", "without --changes", changes}, {"state-megabytes", "without --changes", changes},
                        {"plain-data", "without --ranks", probes},   {"rounds", "without --ranks", probes},
                        {"by-tcp", "with --simulate", false},        {"mesh-ranks", "with --simulate", false}};
  for (const Need& need : needs) {
    if (set.chosen(need.option) && !need.is_met)
      reporter.warn(fmt::format("--{} has no effect {}", need.option, need.lack));
  }
}

ExitCode act(const AllReduceBenchOptions& options, const config::OptionSet& set, Reporter& reporter) {
  check_ranks(options.ranks);
  if (floats_of(options) < 1) throw UsageError(fmt::format("--megabytes: {} is less than a float", options.megabytes));
  if (set.chosen("simulate")) {
    check(options.simulation);
    const bool probes = set.chosen("ranks") && !options.ranks.empty();
    warn_of_idle_options(set, options.simulation.changes, probes, reporter);
    std::optional<HostProbe> probe;
    if (probes) {
      probe = HostProbe{.ranks = static_cast<int>(options.ranks.front()), .rounds = options.rounds};
    }
    return simulate(options.simulation, floats_of(options), options.rounded, options.compressions, probe, reporter);
  }
  for (const char* name :
       {"link", "unevenness", "shards", "ranks-per-host", "plain-data", "changes", "newcomers", "state-megabytes"}) {
    if (set.chosen(name)) throw UsageError(fmt::format("--{} is of a simulation: give --simulate too", name));
  }
  if (options.ranks.empty() && options.mesh_ranks < 2) {
    throw UsageError("--ranks and --mesh-ranks: there is nothing to measure",
                     "give numbers of ranks, such as --ranks 2,3,4");
  }
  std::vector<Contest> contests;
  for (const double ranks : options.ranks) {
    contests.push_back(hold(static_cast<int>(ranks), options));
    if (!reporter.json()) answer(contests.back(), reporter);
  }
  std::optional<double> mesh;
  if (options.mesh_ranks > 1) mesh = mesh_seconds(options);
  if (reporter.json()) {
    reporter.answer_json(document(contests, mesh, options));
  } else if (mesh) {
    reporter.answer(fmt::format("{} ranks are all connected after {:.0f} ms", options.mesh_ranks, 1e3 * *mesh));
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_bench_allreduce() {
  auto command = make_command<AllReduceBenchOptions>(
      "bench allreduce", "measure all-reduce between ranks on this machine, beside Gloo's algorithms, or simulate it",
      act);
  command->examples = {"dtrain bench allreduce",
                       "dtrain bench allreduce --ranks 3 --megabytes 25 --rounds 20 --json",
                       "dtrain bench allreduce --link 10gbit,50us --simulate 64,256",
                       "dtrain bench allreduce --link 10gbit,50us --simulate 256 --changes --newcomers 100",
                       "dtrain bench allreduce --link 100mbit,5ms --simulate 16 --gradient-compression 2bit,powersgd:2",
                       "dtrain bench allreduce --ranks 8 --plain-data --link 1gbit,25ms --simulate 16"};
  command->see_also = {"bench train", "train"};
  return command;
}

}  // namespace dtrain::cli
