// Requests of commands to the coordinator of a running job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/host_phase.hpp>

#include "job_folder.hpp"

namespace dtrain::job {

// The reason of a stop that the user asked for by this signal: "stopped by SIGINT".
std::string stop_reason(int signal);

// The reason of a stop by `dtrain stop`, also in the record of the job's end.
inline constexpr const char* kStoppedByCommand = "requested by `dtrain stop`";

// Sends {"ask": ..., ...} and returns the answer. Throws UsageError if the folder never had a job or the coordinator
// refuses, Error if the job is over, and RemoteError if the coordinator is gone or does not answer in time.
Json ask_coordinator(const JobFolder& folder, const Json& request);
// The same, where the answer is an order to this machine. Throws ForeignFile if the coordinator may be another user's.
Json ask_own_coordinator(const JobFolder& folder, const Json& request);
// The answer to {"ask": "list"} for the user of this folder: reasons and advice name flags in place of settings, and
// commands name the folder. The advice for a host whose key changed begins with the command that forgets the old key.
// Pure.
Json list_for_user(Json list, const JobFolder& folder);
// What the host is, by the answer to {"ask": "list"}. nullopt: it is no host of the job. Throws DataError for a state
// that this version does not know. Pure.
std::optional<elastic::HostPhase> phase_in(const Json& list, const std::string& host);
// Asks the coordinator to stop the job. at_once: without a checkpoint. Throws like ask_coordinator().
void ask_to_stop(const JobFolder& folder, const std::string& reason, bool at_once);
// Sends these bytes to the coordinator of the file and returns its answer. Throws RemoteError.
std::string converse(const CoordinatorFile& file, const std::string& request);
// Whether the coordinator of the file still answers, on whatever machine. Blocks for at most some seconds.
bool answers(const CoordinatorFile& file);
// Waits for the agents on this machine of a job that lost its coordinator, whose workers save their state. Throws
// Interrupted.
void await_saving_agents(const JobFolder& folder, Reporter& reporter);
// Whether a job that survives its coordinator runs there, be it only its agents on this machine. Where another
// coordinator may be about to take over, waits until that is certain.
bool has_living_job(const JobFolder& folder);
// What a user does once the coordinator of the job was lost, and no other one takes over.
std::string how_to_go_on(const CoordinatorFile& lost);
// The error for a folder or a prefix whose job has agents on this machine and no coordinator. `where` begins its text.
Error without_coordinator(const std::string& where, const JobFolder& folder);
// Throws Error if it does.
void refuse_living_job(const JobFolder& folder);

// An edit of `host_worker` of a running job, for `hosts add` and `hosts remove`.
struct HostEdit {
  std::vector<std::string> add{};     // lines
  std::vector<std::string> remove{};  // names
  bool any_number = false;            // allows removing more than half of the hosts
  bool keep_enough = false;           // refuses to remove so many that the job would wait for others
};

// The coordinator applies edits one after the other, replaces host_worker atomically, and acts at once. Returns what
// the user should know of the file, as problems_in(). Throws whatever ask_coordinator() throws: UsageError if the job
// is not elastic or the edit is invalid.
std::vector<std::string> edit_hosts(const JobFolder& folder, const HostEdit& edit);
// What the coordinator repaired in the host file, such as an edit by hand that it had not accepted, and the lines that
// it ignores, by its answer to an edit. Pure.
std::vector<std::string> problems_in(const Json& answer);
// A warning for each of them.
void warn_of_host_file(const JobFolder& folder, const std::vector<std::string>& problems, Reporter& reporter);

}  // namespace dtrain::job
