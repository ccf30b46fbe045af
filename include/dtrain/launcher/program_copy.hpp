// This program as other machines have it.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/launcher/program_files.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

// Members may be called from any thread.
class ProgramCopy {
 public:
  // The program that this process runs: a bundle (packaging/bundle.sh) or a program of this machine.
  ProgramCopy();

  // The command line that starts it where it is at the same path as here.
  const std::vector<std::string>& same_path() const { return command_; }

  struct Ready {
    std::vector<std::string> command;
    std::uint64_t copied = 0;  // bytes
  };
  // Copies the bundle into the user's cache there, unless it is there, or at the same path as here: named by its
  // content, complete or not used.
  // Throws RemoteError when the program cannot be had there.
  Ready make_ready(net::SshSession& session);

 private:
  struct Facts {
    std::string hash;  // of the program, or of the bundle's files
    std::vector<ProgramFile> files;
  };
  const Facts& facts();
  Facts read_bundle() const;
  Ready copy_bundle(net::SshSession& session);
  bool is_at_same_path(net::SshSession& session);
  void check_same(net::SshSession& session);

  std::vector<std::string> command_;
  Path bundle_;         // its folder; empty: there is none
  std::mutex mutex_;    // guards what follows
  bool known_ = false;  // facts_ are
  Facts facts_;
};

}  // namespace dtrain::launcher
