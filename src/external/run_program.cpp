#include <dtrain/external/run_program.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process_end.hpp>
#include <dtrain/net/addresses.hpp>

#include "cast.hpp"
#include "environments.hpp"
#include "find_program.hpp"
#include "key_value_server.hpp"
#include "leased_ports.hpp"
#include "parts.hpp"
#include "processes.hpp"
#include "run_folder.hpp"
#include "waiting_port.hpp"

namespace dtrain::external {
namespace {

using namespace std::chrono_literals;
using elastic::Entry;
using elastic::Phase;
using elastic::Verdict;

// Ranks look at each other so often; with many of them more rarely, since each tells all others.
constexpr auto kRound = 100ms;
constexpr int kRanksOfARound = 16;
// Parameter servers of MXNet end by themselves once all workers have; those of TensorFlow 1 never do.
constexpr auto kServersEnd = 5s;

struct Word {  // of one rank in a round
  std::uint64_t vote = 0;
  std::uint64_t done = 0;
};

ByteView bytes_of_word(const Word& word) { return {reinterpret_cast<const std::byte*>(&word), sizeof word}; }

Word word_from(const std::string& bytes) {
  Word word;
  if (bytes.size() != sizeof word) throw PeerLost("another rank said something else than a round's word");
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

class Rank {
 public:
  Rank(const Program& program, const Workplace& here, elastic::Membership& membership)
      : program_(program), here_(here), membership_(membership) {}

  Ended run() {
    while (true) {
      Entry entry = membership_.enter(standing_);
      if (entry.kind != Entry::Kind::train) return ended_by(entry);
      try {
        if (std::optional<Ended> ended = play(entry)) return *ended;
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

  // One generation. nullopt: another one follows.
  std::optional<Ended> play(const Entry& entry) {
    comm::Communicator& others = *entry.communicator;
    LeasedPorts ports(here_.address, ports_of_a_rank(others.size(), program_.servers));
    Seat seat = take_seat(ports.numbers());
    std::optional<KeyValueServer> rendezvous;
    std::optional<WaitingPort> waiting;
    if (others.rank() == 0) {
      seat.rendezvous = rendezvous.emplace(here_.address).port();
      seat.waiting = waiting.emplace(here_.address, seat.ports[torch_port]).port();
    }
    const Cast cast = agree(others, entry.generation, seat);
    membership_.entered(standing_);
    start(cast, others.rank());
    while (true) {
      const auto failure = processes_->watch(interval(others.size()));
      if (failure) return failed(*failure, cast);
      switch (meet(others)) {
        case Meeting::go_on:
          break;
        case Meeting::change:
          stop_processes("the ranks of the job change");
          return std::nullopt;
        case Meeting::stop:
          stop_processes("the job stops");
          return Ended{.how = Ended::How::stopped, .reason = "the job stops"};
        case Meeting::done:
          end_servers();
          return Ended{.how = Ended::How::done, .reason = "the program is done"};
      }
    }
  }

  Seat take_seat(const std::vector<std::uint16_t>& ports) const {
    return {.host = here_.host,
            .slot = here_.slot,
            .address = here_.address,
            .network_card = net::card_of(here_.address),
            .processors = here_.processors,
            .ports = ports,
            .starts = starts_,
            .failures = failures_,
            .steps = static_cast<std::int64_t>(standing_.step),
            .progress = progress_};
  }

  Cast agree(comm::Communicator& others, std::uint64_t generation, const Seat& mine) {
    std::vector<Seat> seats;
    for (const std::string& seat : others.all_gather(bytes_of(to_json(mine).dump()))) {
      seats.push_back(seat_from_json(Json::parse(seat, "what another rank said")));
    }
    Cast cast = make_cast(generation, std::move(seats), program_.servers);
    standing_ = {.has_state = true, .step = static_cast<std::uint64_t>(cast.steps)};
    starts_ = cast.starts + 1;
    failures_ = cast.failures;
    progress_ = cast.progress;
    return cast;
  }

  void start(const Cast& cast, int rank) {
    rank_ = rank;
    make_folder(rank_folder(here_.job_folder, rank));
    std::error_code ignored;
    std::filesystem::remove(deadline_file(here_.job_folder, rank), ignored);
    processes_.emplace(parts_of(program_, cast, rank, here_), here_.job_folder / "logs",
                       fmt::format("{}.{}", here_.host, here_.slot), here_.mark);
    if (rank != 0) return;
    membership_.report(Json::object({{"event", "started"},
                                     {"generation", cast.generation},
                                     {"ranks", cast.size()},
                                     {"machines", cast.machines().size()},
                                     {"restart", cast.starts}}));
  }

  enum class Meeting { go_on, change, stop, done };

  // A round: everybody says how it stands. Counts as a step, so that the coordinator sees that it goes on.
  Meeting meet(comm::Communicator& others) {
    membership_.progress(Phase::reducing);
    const Word mine{membership_.vote(), processes_->worker_done() ? 1u : 0u};
    std::vector<std::uint64_t> votes;
    bool all_done = true;
    for (const std::string& bytes : others.all_gather(bytes_of_word(mine))) {
      const Word word = word_from(bytes);
      votes.push_back(word.vote);
      all_done = all_done && word.done != 0;
    }
    membership_.begin_apply();
    ++standing_.step;
    membership_.end_apply(standing_);
    if (all_done) return Meeting::done;
    switch (membership_.judge(votes, false)) {
      case Verdict::change:
        return Meeting::change;
      case Verdict::stop:
        return Meeting::stop;
      case Verdict::go_on:
        break;
    }
    membership_.progress(Phase::computing);
    return Meeting::go_on;
  }

  // The others learn it from the coordinator, and all start again; or this rank's failure is the job's.
  std::optional<Ended> failed(const Processes::Failure& failure, const Cast& cast) {
    const std::string reason = fmt::format("{} {}", failure.who, describe_end(failure.end.code, failure.end.signal));
    note_progress();
    if (program_.fruitless_limit > 0 && progress_.fruitless >= program_.fruitless_limit) {
      return Ended{.how = Ended::How::stuck,
                   .reason = fmt::format("{}; it failed {} times at {} without getting further", reason,
                                         progress_.fruitless, progress_.furthest),
                   .end = failure.end};
    }
    if (cast.failures >= program_.max_restarts) {
      return Ended{.how = Ended::How::failed, .reason = reason, .end = failure.end};
    }
    failures_ = cast.failures + 1;
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
    progress_ = now > progress_.furthest ? Progress{now, 1} : Progress{progress_.furthest, progress_.fruitless + 1};
  }

  void end_servers() {
    const auto patience = program_.fills_placeholders ? 0s : kServersEnd;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!processes_->all_done() && std::chrono::steady_clock::now() < end) processes_->watch(kRound);
    stop_processes("all workers are done");
  }

  // It may be saving what it has.
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
  const Workplace& here_;
  elastic::Membership& membership_;
  elastic::Standing standing_;
  int rank_ = 0;
  Progress progress_;
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

Ended run_program(const Program& program, const Workplace& here, elastic::Membership& membership) {
  return Rank(program, here, membership).run();
}

}  // namespace dtrain::external
