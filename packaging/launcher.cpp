// The file `dtrain` at the top of the bundle: starts the program with the bundle's own loader and libraries.
// Linked statically (packaging/bundle.sh), because nothing of the machine's libc may be needed. The folder is found
// from /proc/self/exe, or, where /proc is not mounted, from the path the kernel was given.
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length > 0) return path.substr(0, static_cast<size_t>(length));
  const auto* called = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(called, nullptr), &std::free);
  return real ? real.get() : called;
}

// Where the loader looks: the bundle's own libraries first. Then where the driver of a GPU may be, which the bundle
// cannot contain: in the user's folders, and in those that container runtimes mount.
std::string library_folders(const std::string& own) {
  const char* const users = std::getenv("LD_LIBRARY_PATH");
  return own + (users && *users ? std::string(":") + users : "") + ":/usr/local/nvidia/lib64:/usr/local/nvidia/lib";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string self = own_path();
  const size_t slash = self.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : self.substr(0, slash);
  std::string loader = folder + "/lib/ld-linux-x86-64.so.2";
  std::string libraries = library_folders(folder + "/lib");
  std::string program = folder + "/bin/dtrain";
  char argv0[] = "--argv0", library_path[] = "--library-path", name[] = "dtrain";

  std::vector<char*> command{loader.data(), argv0, name, library_path, libraries.data(), program.data()};
  command.insert(command.end(), argv + 1, argv + argc);
  command.push_back(nullptr);
  execv(loader.c_str(), command.data());
  std::perror(("dtrain: " + loader).c_str());
  return 1;
}
