#include <dtrain/external/run_program.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/elastic/job_files.hpp>
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
constexpr auto kSaveLook = 50ms;
// Connections of a rank to PyTorch's store, and of a worker or server to MXNet's scheduler.
constexpr std::size_t kWaitingOfARank = 16, kMoreWaiting = 64;
// MXNet's parameter servers end by themselves after all workers; those of TensorFlow 1 never do.
constexpr auto kServersEnd = 5s;

struct RoundMessage {  // what a rank sends in a round
  std::uint64_t vote = 0;
  std::uint64_t done = 0;
  std::uint64_t interrupted = 0;  // it knows that the user interrupted the job
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

// What rank 0 serves besides its program.
class OpenPorts {
 public:
  // Puts the numbers of the ports into `info`. Throws Error.
  OpenPorts(const Program& program, const RunContext& here, int ranks, RankInfo& info)
      : torch_(here.address, info.ports[torch_port], connections(ranks)) {
    info.waiting = torch_.port();
    if (program.horovod) {
      info.rendezvous = horovod_.emplace(here.address, ranks).port();
      info.rendezvous_secret = horovod_->secret();
    }
    if (!may_need_scheduler(program)) return;
    info.mxnet_waiting =
        mxnet_.emplace(here.address, info.ports[mxnet_port], connections(ranks + program.servers)).port();
  }

  // True once: a process of MXNet looks for its scheduler.
  bool asks_for_scheduler() { return mxnet_ && mxnet_->was_called() && !std::exchange(has_scheduler_, true); }

 private:
  static std::size_t connections(int ranks) { return kWaitingOfARank * static_cast<std::size_t>(ranks) + kMoreWaiting; }

  WaitingPort torch_;
  std::optional<WaitingPort> mxnet_;
  std::optional<KeyValueServer> horovod_;
  bool has_scheduler_ = false;
};

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
    std::optional<OpenPorts> open;
    if (others.rank() == 0) open.emplace(program_, here_, others.size(), info);
    const RankPlacement placement = agree(others, entry.generation, info);
    membership_.entered(position_);
    start(placement, others.rank());
    while (true) {
      const auto failure = processes_->watch(interval(others.size()));
      if (open && open->asks_for_scheduler()) processes_->add(scheduler_of(program_, placement, here_));
      if (failure) return failed(*failure, placement);
      switch (exchange_round(others)) {
        case RoundResult::go_on:
          break;
        case RoundResult::change:
          let_program_save();
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
    joined_later_ = starts_ == 0 && placement.starts > 0;
    position_ = {.has_state = true, .step = static_cast<std::uint64_t>(placement.steps)};
    starts_ = placement.starts + 1;
    failures_ = placement.failures;
    progress_ = placement.progress;
    return placement;
  }

  void start(const RankPlacement& placement, int rank) {
    rank_ = rank;
    begun_ = std::chrono::steady_clock::now();
    make_folder(rank_folder(here_.job_folder, rank));
    std::error_code ignored;
    for (const Path& file : {deadline_file(here_.job_folder, rank), saved_file(here_.job_folder, rank),
                             error_file(here_.job_folder, rank)}) {
      std::filesystem::remove(file, ignored);
    }
    try {
      write_file_atomic(hosts_copy(here_.job_folder, rank), placement.host_lines());
    } catch (const Error&) {  // a full disk; most programs do not read it
    }
    if (here_.before_start)
      here_.before_start({.generation = placement.generation, .rank = rank, .ranks = placement.size()});
    processes_.emplace(processes_of(program_, placement, rank, here_), here_.job_folder / elastic::job_file::kLogs,
                       fmt::format("{}.{}", here_.host, here_.slot), here_.mark);
    if (rank != 0) return;
    membership_.report(make_event(EventKind::started, {{"generation", placement.generation},
                                                       {"ranks", placement.size()},
                                                       {"machines", placement.machines().size()},
                                                       {"restart", placement.starts}}));
  }

  enum class RoundResult { go_on, change, stop, done };

  // One round: the ranks exchange votes and whether their workers are done. It counts as a step, so that the
  // coordinator sees progress.
  RoundResult exchange_round(comm::Communicator& others) {
    membership_.progress(Phase::reducing);
    const std::uint64_t vote = membership_.vote();  // first: who votes for a stop knows its reason
    const RoundMessage mine{vote, processes_->worker_done() ? 1u : 0u, is_interrupted() ? 1u : 0u};
    std::vector<std::uint64_t> votes;
    bool all_done = true;
    for (const std::string& bytes : others.all_gather(bytes_of_message(mine))) {
      const RoundMessage message = round_message_from(bytes);
      votes.push_back(message.vote);
      all_done = all_done && message.done != 0;
      interrupted_ = interrupted_ || message.interrupted != 0;
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

  // Ends this generation for all ranks, which start again; or returns the failure of this host or of the whole job.
  std::optional<Ended> failed(const Processes::Failure& failure, const RankPlacement& placement) {
    const std::string error = read_error_file(here_.job_folder, rank_);
    const std::string reason =
        fmt::format("{} {}{}{}", failure.who, describe_end(failure.end), error.empty() ? "" : ": ", error);
    if (joined_later_ && std::chrono::steady_clock::now() - begun_ < kTrial) {
      return Ended{.how = Ended::How::unfit, .reason = reason, .end = failure.end};
    }
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
    membership_.report(make_event(EventKind::rank_failed, {{"host", here_.host},
                                                           {"rank", rank_},
                                                           {"reason", reason},
                                                           {"last_lines", Json::array()},
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

  // Asks the program to save its state before a planned change, and waits until it has ended or says so.
  void let_program_save() {
    if (program_.save_signal == 0 || processes_->worker_done()) return;
    membership_.progress(Phase::saving);
    write_deadline(here_.job_folder, rank_, program_.save_timeout, "the ranks of the job are about to change");
    processes_->signal_worker(program_.save_signal);
    const auto end = std::chrono::steady_clock::now() + program_.save_timeout;
    std::error_code ignored;
    while (!processes_->worker_done() && !std::filesystem::exists(saved_file(here_.job_folder, rank_), ignored) &&
           std::chrono::steady_clock::now() < end) {
      processes_->watch(kSaveLook);
    }
  }

  // Gives the program `grace` to save its state.
  void stop_processes(const std::string& reason) {
    if (!processes_) return;
    membership_.progress(Phase::saving);
    write_deadline(here_.job_folder, rank_, program_.grace, reason);
    processes_->stop(is_interrupted() ? program_.interrupt_signal : program_.stop_signal, program_.grace);
    processes_.reset();
  }

  // Ranks stop together when the first of them is asked to; the others may not have heard why.
  bool is_interrupted() const { return interrupted_ || (here_.interrupted && here_.interrupted()); }

  static std::chrono::milliseconds interval(int ranks) {
    return kRound * std::max(1, (ranks + kRanksOfARound - 1) / kRanksOfARound);
  }

  const Program& program_;
  const RunContext& here_;
  elastic::Membership& membership_;
  elastic::TrainingPosition position_;
  int rank_ = 0;
  bool interrupted_ = false;                       // a rank said so
  bool joined_later_ = false;                      // this is its first generation, and not the job's
  std::chrono::steady_clock::time_point begun_{};  // of the program in this generation
  RestartProgress progress_;
  std::int64_t starts_ = 0, failures_ = 0;
  std::optional<Processes> processes_;
};

}  // namespace

void check_program(const Program& program, const std::vector<std::string>& environment) {
  if (program.fills_placeholders && program.command.front().find('{') != std::string::npos) return;
  Variables variables(environment);
  variables.set_all(program.environment);
  variables.set_all(program.worker_environment);
  find_program(program.command.front(), variables.take());
}

Ended run_program(const Program& program, const RunContext& here, elastic::Membership& membership) {
  return Rank(program, here, membership).run();
}

}  // namespace dtrain::external
