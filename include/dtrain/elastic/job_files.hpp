// Names of the files and folders of a job folder that its coordinator, agents and workers have in common. Other
// machines read them, and a job that is resumed, so a name is part of the format.
#pragma once

namespace dtrain::elastic::job_file {

inline constexpr const char* kHosts = "host_worker";
inline constexpr const char* kMemberLog = "host_worker_log";
inline constexpr const char* kEvents = "events.jsonl";
inline constexpr const char* kJournal = "journal.jsonl";
inline constexpr const char* kMetrics = "metrics.prom";
// A folder, with a file for each generation whose coordinator needed the tie-breaker.
inline constexpr const char* kTiebreakers = "gen";
// A folder, with a file for each worker and agent, and one for the coordinators.
inline constexpr const char* kLogs = "logs";
inline constexpr const char* kCoordinatorLog = "coordinator.log";

}  // namespace dtrain::elastic::job_file
