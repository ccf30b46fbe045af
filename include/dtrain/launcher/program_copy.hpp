// This program on other machines: found there, or copied to them. Members may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/launcher/program_files.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

class ProgramCopy {
 public:
  // Describes the program of this process: a bundle (packaging/bundle.sh) or a program of this machine.
  ProgramCopy();

  // True: make_ready() can bring the program; false: it only finds it.
  bool is_bundle() const { return !bundle_.empty(); }
  // The command line that starts the program if it has the same path on the host.
  const std::vector<std::string>& same_path() const { return command_; }

  struct Ready {
    std::vector<std::string> command;
    std::uint64_t copied = 0;  // bytes
  };
  // Copies the bundle into the user's cache on the host, unless a copy is there or the bundle has the same path there
  // as here. A copy is named by its content, and used only if it is complete. Throws RemoteError if the program cannot
  // be provided there.
  Ready make_ready(net::SshSession& session);

 private:
  struct Facts {
    std::string hash;  // of the program, or of the files of the bundle
    std::vector<ProgramFile> files;
  };
  const Facts& facts();
  Facts read_bundle() const;
  Ready copy_bundle(net::SshSession& session);
  bool is_at_same_path(net::SshSession& session);
  void check_same(net::SshSession& session);

  std::vector<std::string> command_;
  Path bundle_;  // its folder; empty: no bundle
  Mutex mutex_;
  bool known_ DTRAIN_GUARDED_BY(mutex_) = false;  // true: facts_ is set
  Facts facts_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::launcher
