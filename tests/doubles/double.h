/* Copyright (c) 2026, gpuserve contributors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the doubles of libnvidia-ml.so.1 and libcuda.so.1 share: they answer from the scenario file that GPU_DOUBLE_SCENARIO
 * names, one instruction a line, the last one that fits wins. GPU is an index or *.
 *
 *   value FUNCTION[.ARGUMENT...] GPU TEXT...   what the call answers; a call without a value answers "not supported"
 *   code FUNCTION[.ARGUMENT...] GPU NUMBER     the return code of the call
 *   hang FUNCTION GPU                          the call never returns
 *   crash FUNCTION GPU                         the call ends the process with SIGSEGV
 *   create FUNCTION PATH                       the call makes a file, as the real libraries make device nodes (nvidia-modprobe)
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES 4096
#define WIDTH 256
#define EXPORT __attribute__((visibility("default")))

static char scenario[LINES][WIDTH];
static int scenario_lines = -1;

static void scenario_load(void)
{
    if (scenario_lines >= 0)
        return;
    scenario_lines = 0;
    const char *path = getenv("GPU_DOUBLE_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) {
        fprintf(stderr, "GPU_DOUBLE_SCENARIO names no readable file\n");
        abort();
    }
    while (scenario_lines < LINES && fgets(scenario[scenario_lines], WIDTH, file)) {
        scenario[scenario_lines][strcspn(scenario[scenario_lines], "\n")] = 0;
        scenario_lines++;
    }
    fclose(file);
}

/* The rest of the last line "VERB KEY GPU rest" that fits, or NULL. gpu -1: a call about no GPU. */
static const char *scenario_find(const char *verb, const char *key, int gpu)
{
    scenario_load();
    for (int line = scenario_lines - 1; line >= 0; line--) {
        char found_verb[WIDTH], found_key[WIDTH], found_gpu[WIDTH];
        int rest = 0;
        if (sscanf(scenario[line], "%255s %255s %255s %n", found_verb, found_key, found_gpu, &rest) < 3)
            continue;
        if (strcmp(found_verb, verb) || strcmp(found_key, key))
            continue;
        if (strcmp(found_gpu, "*") && atoi(found_gpu) != gpu)
            continue;
        return scenario[line] + rest;
    }
    return NULL;
}

static void scenario_create(const char *function)
{
    scenario_load();
    for (int line = 0; line < scenario_lines; line++) {
        char key[WIDTH], path[WIDTH];
        if (sscanf(scenario[line], "create %255s %255s", key, path) == 2 && !strcmp(key, function)) {
            FILE *file = fopen(path, "w");
            if (file)
                fclose(file);
        }
    }
}

/* Does what the scenario says about a call. Returns its code; *text is its value, when there is one and the code is 0. */
static int scenario_call(const char *function, const char *key, int gpu, int unsupported, const char **text)
{
    scenario_create(function);
    if (scenario_find("hang", function, gpu))
        for (;;)
            pause();
    if (scenario_find("crash", function, gpu))
        raise(SIGSEGV);
    const char *code = scenario_find("code", key, gpu);
    if (!code)
        code = scenario_find("code", function, gpu);
    if (code && atoi(code))
        return atoi(code);
    *text = scenario_find("value", key, gpu);
    return *text ? 0 : unsupported;
}
