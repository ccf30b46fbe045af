#include <dtrain/external/run_program.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/net/addresses.hpp>

#include "environments.hpp"
#include "find_program.hpp"
#include "key_value_server.hpp"
#include "leased_ports.hpp"
#include "processes.hpp"
#include "rank_placement.hpp"
#include "rank_processes.hpp"
#include "run_folder.hpp"
#include "waiting_port.hpp"

namespace dtrain::external {
namespace {

using namespace std::chrono_literals;
using elastic::Entry;
using elastic::Phase;
using elastic::Verdict;

// Interval of rounds. It grows with the number of ranks, because each rank sends to all others.
constexpr auto kRound = 100ms;
constexpr int kRanksOfARound = 16;
// MXNet's parameter servers end by themselves after all workers; those of TensorFlow 1 never do.
constexpr auto kServersEnd = 5s;

struct RoundMessage {  // what a rank sends in a round
  std::uint64_t vote = 0;
  std::uint64_t done = 0;
};

ByteView bytes_of_message(const RoundMessage& message) {
  return {reinterpret_cast<const std::byte*>(&message), sizeof message};
}

RoundMessage round_message_from(const std::string& bytes) {
  RoundMessage message;
  if (bytes.size() != sizeof message) throw PeerLost("another rank sent an invalid message in a round");
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

class Rank {
 public:
  Rank(const Program& program, const RunContext& here, elastic::Membership& membership)
      : program_(program), here_(here), membership_(membership) {}

  Ended run() {
    while (true) {
      Entry entry = membership_.enter(position_);
      if (entry.kind != Entry::Kind::train) return ended_by(entry);
      try {
        if (std::optional<Ended> ended = run_generation(entry)) return *ended;
      } catch (const PeerLost& error) {
        membership_.lost(error);
        stop_processes("a rank is lost: all start again");
      }
    }
  }

 private:
  static Ended ended_by(const Entry& entry) {
    return {.how = entry.kind == Entry::Kind::leave ? Ended::How::removed : Ended::How::stopped,
            .reason = entry.reason};
  }

  // Runs one generation. nullopt: another one follows.
  std::optional<Ended> run_generation(const Entry& entry) {
    comm::Communicator& others = *entry.communicator;
    LeasedPorts ports(here_.address, ports_of_a_rank(others.size(), program_.servers));
    RankInfo info = own_info(ports.numbers());
    std::optional<KeyValueServer> rendezvous;
    std::optional<WaitingPort> waiting;
    if (others.rank() == 0) {
      info.rendezvous = rendezvous.emplace(here_.address).port();
      info.waiting = waiting.emplace(here_.address, info.ports[torch_port]).port();
    }
    const RankPlacement placement = agree(others, entry.generation, info);
    membership_.entered(position_);
    start(placement, others.rank());
    while (true) {
      const auto failure = processes_->watch(interval(others.size()));
      if (failure) return failed(*failure, placement);
      switch (exchange_round(others)) {
        case RoundResult::go_on:
          break;
        case RoundResult::change:
          stop_processes("the ranks of the job change");
          return std::nullopt;
        case RoundResult::stop:
          stop_processes("the job stops");
          return Ended{.how = Ended::How::stopped, .reason = "the job stops"};
        case RoundResult::done:
          end_servers();
          return Ended{.how = Ended::How::done, .reason = "the program is done"};
      }
    }
  }

  RankInfo own_info(const std::vector<std::uint16_t>& ports) const {
    return {.host = here_.host,
            .slot = here_.slot,
            .address = here_.address,
            .network_card = net::card_of(here_.address),
            .processors = here_.processors,
            .ports = ports,
            .starts = starts_,
            .failures = failures_,
            .steps = static_cast<std::int64_t>(position_.step),
            .progress = progress_};
  }

  RankPlacement agree(comm::Communicator& others, std::uint64_t generation, const RankInfo& mine) {
    std::vector<RankInfo> ranks;
    for (const std::string& info : others.all_gather(bytes_of(to_json(mine).dump()))) {
      ranks.push_back(rank_info_from_json(Json::parse(info, "another rank's information")));
    }
    RankPlacement placement = place_ranks(generation, std::move(ranks), program_.servers);
    position_ = {.has_state = true, .step = static_cast<std::uint64_t>(placement.steps)};
    starts_ = placement.starts + 1;
    failures_ = placement.failures;
    progress_ = placement.progress;
    return placement;
  }

  void start(const RankPlacement& placement, int rank) {
    rank_ = rank;
    make_folder(rank_folder(here_.job_folder, rank));
    std::error_code ignored;
    std::filesystem::remove(deadline_file(here_.job_folder, rank), ignored);
    processes_.emplace(processes_of(program_, placement, rank, here_), here_.job_folder / "logs",
                       fmt::format("{}.{}", here_.host, here_.slot), here_.mark);
    if (rank != 0) return;
    membership_.report(Json::object({{"event", "started"},
                                     {"generation", placement.generation},
                                     {"ranks", placement.size()},
                                     {"machines", placement.machines().size()},
                                     {"restart", placement.starts}}));
  }

  enum class RoundResult { go_on, change, stop, done };

  // One round: the ranks exchange votes and whether their workers are done. It counts as a step, so that the
  // coordinator sees progress.
  RoundResult exchange_round(comm::Communicator& others) {
    membership_.progress(Phase::reducing);
    const RoundMessage mine{membership_.vote(), processes_->worker_done() ? 1u : 0u};
    std::vector<std::uint64_t> votes;
    bool all_done = true;
    for (const std::string& bytes : others.all_gather(bytes_of_message(mine))) {
      const RoundMessage message = round_message_from(bytes);
      votes.push_back(message.vote);
      all_done = all_done && message.done != 0;
    }
    membership_.begin_apply();
    ++position_.step;
    membership_.end_apply(position_);
    if (all_done) return RoundResult::done;
    switch (membership_.judge(votes, false)) {
      case Verdict::change:
        return RoundResult::change;
      case Verdict::stop:
        return RoundResult::stop;
      case Verdict::go_on:
        break;
    }
    membership_.progress(Phase::computing);
    return RoundResult::go_on;
  }

  // Ends this generation for all ranks, which start again; or returns the failure of the whole job.
  std::optional<Ended> failed(const Processes::Failure& failure, const RankPlacement& placement) {
    const std::string reason = fmt::format("{} {}", failure.who, describe_end(failure.end));
    note_progress();
    if (program_.fruitless_limit > 0 && progress_.fruitless >= program_.fruitless_limit) {
      return Ended{.how = Ended::How::stuck,
                   .reason = fmt::format("{}; it failed {} times at {} without getting further", reason,
                                         progress_.fruitless, progress_.furthest),
                   .end = failure.end};
    }
    if (placement.failures >= program_.max_restarts) {
      return Ended{.how = Ended::How::failed, .reason = reason, .end = failure.end};
    }
    failures_ = placement.failures + 1;
    membership_.report(Json::object({{"event", "rank_failed"},
                                     {"host", here_.host},
                                     {"rank", rank_},
                                     {"reason", reason},
                                     {"failures", failures_},
                                     {"max_restarts", program_.max_restarts}}));
    throw PeerLost(reason);
  }

  void note_progress() {
    const std::int64_t now = read_progress(here_.job_folder);
    progress_ = now > progress_.furthest ? RestartProgress{now, 1}
                                         : RestartProgress{progress_.furthest, progress_.fruitless + 1};
  }

  void end_servers() {
    const auto patience = program_.fills_placeholders ? 0s : kServersEnd;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!processes_->all_done() && std::chrono::steady_clock::now() < end) processes_->watch(kRound);
    stop_processes("all workers are done");
  }

  // Gives the program `grace` to save its state.
  void stop_processes(const std::string& reason) {
    if (!processes_) return;
    membership_.progress(Phase::saving);
    write_deadline(here_.job_folder, rank_, program_.grace, reason);
    processes_->stop(program_.stop_signal, program_.grace);
    processes_.reset();
  }

  static std::chrono::milliseconds interval(int ranks) {
    return kRound * std::max(1, (ranks + kRanksOfARound - 1) / kRanksOfARound);
  }

  const Program& program_;
  const RunContext& here_;
  elastic::Membership& membership_;
  elastic::TrainingPosition position_;
  int rank_ = 0;
  RestartProgress progress_;
  std::int64_t starts_ = 0, failures_ = 0;
  std::optional<Processes> processes_;
};

}  // namespace

void check_program(const Program& program, const std::vector<std::string>& environment) {
  Variables variables(environment);
  variables.set_all(program.environment);
  variables.set_all(program.worker_environment);
  find_program(program.command.front(), variables.take());
}

Ended run_program(const Program& program, const RunContext& here, elastic::Membership& membership) {
  return Rank(program, here, membership).run();
}

}  // namespace dtrain::external
