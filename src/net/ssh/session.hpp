// What an SshSession is made of.
#pragma once

#include <memory>

#include <dtrain/net/ssh.hpp>

#include "connect.hpp"
#include "sftp.hpp"

namespace dtrain::net {

struct SshSession::State {
  SshOptions options;
  ssh::Connected connected;
  std::string name;
  std::unique_ptr<ssh::Sftp> sftp;  // once files were asked for; ends before the connection

  ssh::Connection& connection() { return *connected.connection; }
  ssh::Sftp& files();
  ssh::Patience patience(std::chrono::milliseconds time) const { return {ssh::Clock::now() + time, options.stop}; }
};

}  // namespace dtrain::net
