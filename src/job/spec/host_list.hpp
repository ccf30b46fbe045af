// Chooses the initial hosts of a job, and writes the file `host_worker` in its folder.
#pragma once

#include <string>

#include "config/job_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

// Reads the file of -H, or a pipe that /dev/fd or /dev/stdin names. Throws UsageError if it does not exist, has no
// host, or has an invalid line, and Error for a FIFO.
elastic::HostList read_host_file(const Path& file);

// For a command that a queue or a scheduler starts again later, which reads the file of -H once more. Throws UsageError
// if it does not exist, or is a pipe, which gives its text once.
void require_lasting_host_file(const config::JobOptions& options);

int workers_of(const elastic::HostList& list);

struct StartingHosts {
  elastic::HostList list;
  std::string text;   // what host_worker will hold
  bool kept = false;  // true: it already holds it
  std::string note;   // why an existing host_worker is not kept with --resume; may be empty
};

// The initial hosts: an existing host_worker with --resume, unless --reset-hosts is given or it has a host that the
// scheduler of this batch job did not grant; otherwise the first -n lines of -H; without -H the hosts of the batch job,
// if a process starter is used; otherwise worker1, worker2, ... Throws UsageError if there are fewer than -n hosts,
// none, or invalid lines. Writes nothing. `chose_number`: the user gave -n.
StartingHosts choose_hosts(const config::JobOptions& options, bool chose_number, bool resume);

// Adds slots= to lines without it.
void give_slots(StartingHosts& hosts, int slots);

// Writes host_worker unless it is kept, and the folders that workers need. The ledger of another run, which this run
// does not resume, is renamed.
void create_job_files(const JobFolder& folder, const StartingHosts& hosts, bool resume, Reporter& reporter);

}  // namespace dtrain::job
