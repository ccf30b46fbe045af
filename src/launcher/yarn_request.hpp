// Requests to YARN's ResourceManager in the form of its REST API.
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

// The content of a command file. DistributedShell reads it with DataInputStream.readUTF, so it begins with the length.
// Throws UsageError if a node would change a part of it.
std::string command_file_content(const std::vector<std::string>& command);

// How an application ended, from the answer to "apps/ID"; empty: it runs.
std::string yarn_end(const Json& answer);

}  // namespace dtrain::launcher
