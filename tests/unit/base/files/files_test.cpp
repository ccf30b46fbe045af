#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <tuple>

#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/files.hpp>

#include "common/small_files.hpp"

namespace dtrain {
namespace {

// A folder of its own for every test, removed afterwards.
class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "dtrain-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  Path folder;
};

template <typename Action>
std::string failure(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Files, ACommittedFileHoldsWhatWasWritten) {
  AtomicFile file(folder / "a");
  file.write("0123");
  file.write("4567");
  file.write_at(2, bytes_of("xy"));
  EXPECT_EQ(file.size(), 8u);
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "01xy4567");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, WithoutCommitTheOldContentStays) {
  write_file_atomic(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write(std::string(3 << 20, 'n'));
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(file_count(), 1u);
}

// Another machine that shares the folder may have a process of the same number.
TEST_F(Files, TwoWritersOfOnePathBothCommitTheirWholeContent) {
  AtomicFile first(folder / "a"), second(folder / "a");
  first.write(std::string(3 << 20, '1'));
  second.write(std::string(3 << 20, '2'));
  EXPECT_EQ(file_count(), 2u);
  second.commit();
  EXPECT_EQ(read_file(folder / "a"), std::string(3 << 20, '2'));
  first.commit();
  EXPECT_EQ(read_file(folder / "a"), std::string(3 << 20, '1'));
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, RenamesWithItsContentOrSaysBothNames) {
  make_folder(folder / "new");
  write_file_atomic(folder / "new/a", "content");
  rename_durably(folder / "new", folder / "0001");
  EXPECT_EQ(read_file(folder / "0001/a"), "content");
  EXPECT_EQ(file_count(), 1u);
  EXPECT_EQ(
      failure([&] { rename_durably(folder / "new", folder / "b"); }),
      (folder / "new").string() + ": cannot rename it to " + (folder / "b").string() + ": No such file or directory");
}

// Stands in for a full disk: the kernel refuses bytes past a limit on the size of files.
TEST_F(Files, AWriteThatFailsKeepsTheOldContentAndLeavesNothingBehind) {
  write_file_atomic(folder / "a", "old");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{1 << 20, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = failure([&] { write_file_atomic(folder / "a", std::string(4 << 20, 'n')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(message, (folder / "a").string() + ": cannot write: File too large");
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, BytesThatCannotAllBeOverwrittenSayWhy) {
  AtomicFile file(folder / "a");
  file.write(std::string(2 << 20, 'n'));
  const SmallFiles disk;
  disk.limit(1 << 20);
  const std::string message = failure([&] { file.write_at((1 << 20) - 2, bytes_of("four")); });
  disk.lift();
  EXPECT_EQ(message, (folder / "a").string() + ": cannot write: File too large");
}

TEST_F(Files, EveryFailureNamesThePathAndTheReason) {
  EXPECT_EQ(failure([&] { read_file(folder / "missing"); }),
            (folder / "missing").string() + ": cannot open: No such file or directory");
  EXPECT_EQ(failure([&] { read_file(folder); }), folder.string() + ": cannot read: Is a directory");
  EXPECT_NE(failure([&] { AtomicFile file(folder / "no" / "a"); }).find("No such file"), std::string::npos);
  write_file_atomic(folder / "a", "");
  EXPECT_NE(failure([&] { make_folder(folder / "a" / "b"); }).find((folder / "a" / "b").string()), std::string::npos);
}

TEST_F(Files, AFileInThePlaceOfAFolderIsSaid) {
  write_file_atomic(folder / "a", "");
  try {
    make_folder(folder / "a" / "b");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "a part of this path is a file, not a folder; choose another path");
  }
}

TEST_F(Files, ANameThatCannotBeLookedUpIsAnErrorAndNoMissingFile) {
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(failure([&] { std::ignore = file_exists(folder / "loop"); }),
            (folder / "loop").string() + ": cannot look for it: Too many levels of symbolic links");
  EXPECT_FALSE(file_exists(folder / "missing"));
  EXPECT_TRUE(file_exists(folder));
}

TEST_F(Files, AMappedFileShowsItsBytes) {
  write_file_atomic(folder / "a", "bytes");
  MappedFile mapped(folder / "a");
  MappedFile moved(std::move(mapped));
  EXPECT_EQ(text_of(moved.bytes()), "bytes");
  EXPECT_TRUE(mapped.bytes().empty());
}

TEST_F(Files, AnEmptyFileMapsToNoBytes) {
  write_file_atomic(folder / "a", "");
  EXPECT_TRUE(MappedFile(folder / "a").bytes().empty());
}

// Root could replace /dev/null by a file.
TEST_F(Files, AnAtomicFileReplacesNothingButFiles) {
  const Path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(write_file_atomic(pipe, "x"), UsageError);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_THROW(write_file_atomic("/dev/null", "x"), UsageError);
  EXPECT_THROW(write_file_atomic(folder, "x"), UsageError);
}

// Opening one would wait for its writer, for ever where there is none.
TEST_F(Files, AFifoInThePlaceOfAFileIsRefusedAtOnce) {
  const Path pipe = folder / "pipe", link = folder / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, link);
  for (const Path& path : {pipe, link}) {
    EXPECT_EQ(failure([&] { read_file(path); }), path.string() + ": is a FIFO, not a file");
    EXPECT_EQ(failure([&] { const MappedFile mapped(path); }), path.string() + ": is a FIFO, not a file");
  }
}

TEST_F(Files, ALinkToAStreamIsNoFileAndOneToTheNullDeviceIsEmpty) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reader(ends[0]), writer(ends[1]);
  std::filesystem::create_symlink("/dev/fd/" + std::to_string(reader.get()), folder / "stream");
  EXPECT_EQ(failure([&] { read_file(folder / "stream"); }), (folder / "stream").string() + ": is a FIFO, not a file");
  std::filesystem::create_symlink("/dev/zero", folder / "zero");
  EXPECT_EQ(failure([&] { read_file(folder / "zero"); }), (folder / "zero").string() + ": is a device, not a file");
  std::filesystem::create_symlink("/dev/null", folder / "null");
  EXPECT_EQ(read_file(folder / "null"), "");
}

// As the shell's <(...) names it, with a program that has written nothing yet.
TEST_F(Files, APipeThatIsNamedAsOneIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reader(ends[0]);
  std::thread program([end = ends[1]] {
    const FileDescriptor writer(end);
    for (const std::string_view part : {"first ", "second"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(::write(writer.get(), part.data(), part.size()), std::ssize(part));
    }
  });
  const Path path = "/dev/fd/" + std::to_string(reader.get());
  EXPECT_EQ(read_file(path), "first second");
  program.join();
  EXPECT_EQ(failure([&] { const MappedFile mapped(path); }), path.string() + ": is a FIFO, not a file");
}

TEST_F(Files, TheCacheWithoutAHomeIsAFolderOfTheUserAlone) {
  const auto home = environment("HOME"), cache = environment("XDG_CACHE_HOME"), temporary = environment("TMPDIR");
  ::unsetenv("HOME");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("TMPDIR", folder.c_str(), 1);
  const Path own = user_cache_folder();
  EXPECT_EQ(own.parent_path(), folder);
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(user_cache_folder(), own);
  std::filesystem::permissions(own, std::filesystem::perms::all);  // as another user could have made it
  EXPECT_THROW(user_cache_folder(), UsageError);
  std::filesystem::remove(own);
  std::filesystem::create_directory_symlink(folder, own);
  EXPECT_THROW(user_cache_folder(), UsageError);
  for (const auto& [name, value] : {std::pair{"HOME", home}, {"XDG_CACHE_HOME", cache}, {"TMPDIR", temporary}}) {
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }
}

TEST_F(Files, MakeFolderMakesTheParentsTooAndMayBeRepeated) {
  make_folder(folder / "a" / "b");
  make_folder(folder / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b"));
}

TEST_F(Files, ANameThatCannotBeLookedForIsNotTakenForOneThatIsNotThere) {
  write_file_atomic(folder / "file", "content");
  EXPECT_TRUE(is_listed_or_throw(folder / "file"));
  EXPECT_FALSE(is_listed_or_throw(folder / "other"));
  EXPECT_FALSE(is_listed_or_throw(folder / "nowhere" / "other"));
  EXPECT_FALSE(is_listed_or_throw(folder / "file" / "other"));
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_FALSE(is_listed(folder / "loop" / "file"));
  EXPECT_THROW(std::ignore = is_listed_or_throw(folder / "loop" / "file"), Error);
}

TEST_F(Files, ADescriptorIsClosedOnceAndMovesItsOwnership) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reader(ends[0]);
  {
    FileDescriptor writer(ends[1]);
    FileDescriptor owner(std::move(writer));
    EXPECT_FALSE(writer);
  }
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);  // the writing end is closed
}

TEST(ScratchFolderTest, IsRemovedWithItsContent) {
  Path path;
  {
    const ScratchFolder folder("dtrain-test");
    path = folder.path();
    EXPECT_TRUE(path.filename().string().starts_with("dtrain-test-"));
    write_file_atomic(path / "file", "content");
  }
  EXPECT_FALSE(is_listed(path));
}

TEST(ScratchFolderTest, SaysWhatToDoWithoutAPlaceForIt) {
  try {
    make_temporary_folder("no/such/folder", "give another one");
    FAIL() << "a folder was made";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot make a folder"), std::string::npos) << error.what();
    EXPECT_EQ(error.hint(), "give another one");
  }
}

}  // namespace
}  // namespace dtrain
