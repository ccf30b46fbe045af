// How the coordinator of a job decides, and what it reports to the program that runs it.
#pragma once

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::milliseconds;

// Minimum time without a sign of progress before a member counts as hung in a phase. A phase that begins is such a
// sign, and so is each shard that is computed on the host. When the job's own times are known, the limit is at least
// hang_factor median steps, or hang_factor / 4 times its longest evaluation or save.
struct HangFloors {
  Duration loading{20'000};
  Duration computing{20'000};    // and applying
  Duration first_step{120'000};  // instead of the two above, until the worker has finished a step
  Duration evaluating{60'000};
  Duration saving{300'000};
  Duration waiting{60'000};  // in a phase that waits for others: then the one that is behind is to blame
};

// Which hosts must pass the admission check: none, hosts that join while the job runs, or all.
enum class AdmissionCheckFor { none, new_hosts, all_hosts };

// How large a step is, for reports. The batch is constant, or follows the workers and with it the learning rate.
struct StepSize {
  int constant = 0;    // samples; 0: it follows the workers, or is unknown
  int per_worker = 0;  // samples of each worker; 0: constant or unknown
  int rate_batch = 0;  // with per_worker: the batch that the learning rates are meant for; 0: they stay
  int samples(std::size_t workers) const { return constant > 0 ? constant : per_worker * static_cast<int>(workers); }
  // On the schedule's rate, once a ramp is over.
  double rate_factor(std::size_t workers) const {
    return rate_batch > 0 ? static_cast<double>(samples(workers)) / rate_batch : 1;
  }
};

// Times the limit of silence when all look ill: the cause may be the coordinator itself, or a disk that they share.
inline constexpr int kPatienceWhenAll = 5;

// The same for the whole job.
struct Policy {
  bool elastic = false;                 // false: the first failure ends the job, and the host file is read once
  Boundary boundary = Boundary::epoch;  // for joins and leaves; failures and drains act at the next step
  int min_workers = 1;                  // with fewer, the members hold their state and wait
  int max_workers = std::numeric_limits<int>::max();  // further hosts are spares
  bool allow_mass_remove = false;                     // an edit by hand may remove more than half of the hosts
  bool allow_mixed_hardware = false;                  // workers with another fingerprint may join
  AdmissionCheckFor admission_check = AdmissionCheckFor::none;
  int failure_limit = 100;   // failures in a row without a step between them before the job stops
  int fruitless_limit = 10;  // recoveries in a row without a step between them before the job stops

  Duration between_changes{250};          // minimum time between generations: edits within it are one change
  Duration start_wait{30'000};            // wait of the first generation for slow workers, once there are enough
  Duration replace_wait{120'000};         // wait of a replaced host for its replacement
  Duration host_timeout{60'000};          // StartHost to HostUp
  Duration admission_timeout{3'700'000};  // RunAdmissionCheck to AdmissionChecked
  Duration hello_timeout{30'000};         // StartWorker to Hello
  Duration prepare_timeout{600'000};      // Hello to Ready
  Duration mesh_timeout{15'000};          // Prepare to the last Meshed
  Duration freeze_timeout{5'000};         // Freeze to the last Frozen
  Duration heartbeat_timeout{3'000};      // silence of a worker that sent Hello
  // A newcomer has nothing to lose, and the others wait for it: its silence in its first generation, until a step.
  Duration newcomer_timeout() const { return heartbeat_timeout / 3; }
  Duration leave_timeout{30'000};  // Leave, or Left{done}, to the end of the process
  Duration stop_timeout{300'000};  // Stop to the end of the last process
  Duration kill_timeout{15'000};   // KillWorker to WorkerExited, EndHost to HostDown: then the host is lost
  Duration hold_timeout{600'000};  // below min_workers: then a checkpoint and exit 75
  Duration worker_grace{300'000};  // for workers without a coordinator to save their state, before SIGKILL
  bool quorum = false;             // agents outlive their coordinator: see VoterHosts

  StepSize step_size;

  double hang_factor = 20;
  HangFloors hang_floors;
  Duration quarantine_base{5'000};  // doubles with each failure; see quarantine_time()
  Duration quarantine_cap{600'000};
  Duration forgive_after{600'000};           // time as a member after which the failures of its host are forgotten
  double straggler_factor = 1.5;             // times the others' median compute time of a step
  Duration between_straggler_lines{60'000};  // about one host
};

struct Say {  // a line for the user
  enum class Kind { note, warning, error };
  Kind kind = Kind::note;
  std::string text;
  std::string hint;  // what to do next; may be empty
};
struct Finish {  // the job is over and no process of it runs; the last action
  ExitCode exit_code = ExitCode::ok;
  std::string reason;
};

// The first failure of the job, which the user is shown as its cause.
struct Failure {
  WorkerId worker = 0;  // 0: the host itself
  std::string host;
  int rank = -1;  // -1: it was no member
  Generation generation = 0;
  std::string reason;  // with signal or exit code
  std::string hint{};  // what to do about it, where it ended the job
  std::vector<std::string> last_lines{};
  bool lines_shown = false;       // to the user, as a note
  int exit_code = 0, signal = 0;  // of its process, once known; 0 and 0: not yet
  bool unreachable = false;       // no agent could be started there
};

}  // namespace dtrain::elastic
