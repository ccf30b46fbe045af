// What is asked of YARN's ResourceManager, as its REST API has it.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/launcher/yarn_launcher.hpp>

namespace dtrain::launcher {

// The body that submits the application of one agent: Hadoop's own DistributedShell master, which registers itself,
// asks for one container, and runs there what `command_file` holds.
struct CommandFile {
  Path path;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // milliseconds since 1970
};
Json yarn_submission(const std::string& application, const YarnLauncherOptions& options, const CommandFile& command);

// The content of a command file: DistributedShell reads it by DataInputStream.readUTF, so the length is in front.
// UsageError: it holds what a node would change.
std::string command_file_content(const std::vector<std::string>& command);

// How an application ended, as "apps/ID" says; empty: it did not.
std::string yarn_end(const Json& answer);

}  // namespace dtrain::launcher
