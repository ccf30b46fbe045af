// Which hosts a job begins with, and the file `host_worker` in its folder.
#pragma once

#include <string>

#include "config/job_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

// The file that -H names. UsageError: it is not there, has no host, or has a line that means nothing.
elastic::HostList read_host_file(const Path& file);

int workers_of(const elastic::HostList& list);

struct StartingHosts {
  elastic::HostList list;
  std::string text;   // what host_worker will hold
  bool kept = false;  // it holds it already
};

// An existing host_worker is kept on --resume unless --reset-hosts; else the first -n lines of -H; without -H the
// hosts of the batch job that this is in, where a starter brings agents to hosts; else they are called worker1,
// worker2, ... Throws UsageError when the file has fewer than -n hosts, none, or lines that
// mean nothing. Writes nothing. `chose_number`: the person gave -n.
StartingHosts choose_hosts(const config::JobOptions& options, bool chose_number, bool resume);

// Writes host_worker where it is not kept, and the folders that workers need. The ledger of another run, which this one
// does not resume, is put aside.
void create_job_files(const JobFolder& folder, const StartingHosts& hosts, bool resume, Reporter& reporter);

}  // namespace dtrain::job
