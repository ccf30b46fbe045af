# Flags as targets: dtrain_settings is for all of our code, dtrain_warnings too but never for what others wrote.
add_library(dtrain_settings INTERFACE)
target_compile_features(dtrain_settings INTERFACE cxx_std_20)
target_include_directories(dtrain_settings INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(dtrain_settings INTERFACE DTRAIN_VERSION="${PROJECT_VERSION}")
# The compiler must not fuse a*b+c where one build would and another would not: the bits are a promise.
target_compile_options(dtrain_settings INTERFACE -ffp-contract=off -fno-math-errno)
if(DTRAIN_SANITIZE)
  target_compile_options(dtrain_settings INTERFACE
    -fsanitize=${DTRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dtrain_settings INTERFACE -fsanitize=${DTRAIN_SANITIZE})
endif()

add_library(dtrain_warnings INTERFACE)
target_compile_options(dtrain_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)  # include/dtrain/base/mutex.hpp
# A unity build includes the source, so that its anonymous namespace looks like a header's.
if(CMAKE_UNITY_BUILD)
  target_compile_options(dtrain_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# Folders that mostly wait for other processes and machines: -O1 compiles them a third faster than -O3.
set(dtrain_waiting_folders external launcher cluster config job cli)
function(dtrain_optimise_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()
# Tests wait for the code that they test: -O0 compiles them in two thirds of the time of -O1.
function(dtrain_optimise_not target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# The headers that most sources begin with, compiled once. Parsing them was two thirds of the time of a build.
option(DTRAIN_PCH "Precompile the standard headers, fmt and base's" ON)

# Every source of `target` begins with them, as those of `first` do: a precompiled header is valid for one set of flags.
# What is compiled for another instruction set or with OpenMP cannot take part.
function(dtrain_precompile target first)
  if(NOT DTRAIN_PCH)
    return()
  elseif(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/precompiled.hpp)
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# dtrain_folder(NAME SOURCES ... PARTS sub-folders ... LINK other folders ... PRIVATE_LINK third-party ...)
# PARTS: the order in which sub-folders may know each other; tests/lint reads it, CMake does not.
# ALONE: sources that a unity build (presets quick and check) compiles by themselves, because names that are internal to
# them are internal to another source too, or because a test puts others in their place.
function(dtrain_folder name)
  cmake_parse_arguments(arg "" "" "SOURCES;ALONE;PARTS;LINK;PRIVATE_LINK" ${ARGN})
  add_library(dtrain_${name} STATIC ${arg_SOURCES})
  set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  list(TRANSFORM arg_LINK PREPEND dtrain_)
  target_link_libraries(dtrain_${name} PUBLIC dtrain_settings ${arg_LINK} PRIVATE dtrain_warnings fmt::fmt ${arg_PRIVATE_LINK})
  # Quoted includes name a file of this folder, or of an application folder to its left (tests/lint/check_direction.py).
  target_include_directories(dtrain_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
  set(first base)
  if(name IN_LIST dtrain_waiting_folders)
    dtrain_optimise_less(dtrain_${name})
    list(GET dtrain_waiting_folders 0 first)
  endif()
  if(NOT arg_PRIVATE_LINK MATCHES OpenMP)
    dtrain_precompile(dtrain_${name} dtrain_${first})
  endif()
endfunction()
