#include <dtrain/launcher/program_archive.hpp>

#include <functional>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/tar.hpp>
#include <dtrain/launcher/program_files.hpp>

namespace dtrain::launcher {
namespace {

using Sink = std::function<void(ByteView)>;

ProgramArchive pack(const Sink& sink) {
  Sha256 hash;
  ProgramArchive archive;
  const auto add = [&](ByteView bytes) {
    hash.update(bytes);
    archive.size += bytes.size();
    if (sink) sink(bytes);
  };
  for (const ProgramFile& file : program_files()) {
    const MappedFile content(file.path);
    add(bytes_of(tar_header({.name = file.name, .size = file.size, .mode = file.mode})));
    add(content.bytes());
    add(bytes_of(tar_padding(file.size)));
  }
  add(bytes_of(tar_end()));
  archive.sha256 = hash.hex();
  return archive;
}

}  // namespace

ProgramArchive program_archive() { return pack({}); }

ProgramArchive write_program_archive(const Path& to) {
  AtomicFile file(to);
  const ProgramArchive archive = pack([&](ByteView bytes) { file.write(bytes); });
  file.commit();
  return archive;
}

}  // namespace dtrain::launcher
